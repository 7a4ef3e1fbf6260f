"""Rollouts: the plan, the state machine, and the gates that look at a canary. Pure."""
