"""Logs and metrics: metadata, never prompts."""
