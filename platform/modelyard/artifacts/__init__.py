"""Artifacts: one immutable, verified folder per model version."""
