"""The dynamic batcher for small models."""
