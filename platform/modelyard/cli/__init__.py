"""The `modelyard` command."""
