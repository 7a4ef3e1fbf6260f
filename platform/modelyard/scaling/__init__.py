"""Scaling rules: pure functions from load to a number of replicas."""
