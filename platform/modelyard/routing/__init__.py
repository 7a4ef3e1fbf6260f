"""From what a caller asked for to the replicas that may answer it."""
