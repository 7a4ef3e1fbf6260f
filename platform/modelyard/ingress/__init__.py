"""The data path: HTTP in, pipeline, answers out. Knows nothing of Ray."""
