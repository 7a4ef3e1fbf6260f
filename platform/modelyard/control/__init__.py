"""Control: the one place that decides weights, overrides and revocations, and its durable state."""
