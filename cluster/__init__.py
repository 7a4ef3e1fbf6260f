"""The cluster: a local Ray head, the board, and the shims that Serve loads."""
