"""Which replica goes where: the planner of a fleet."""
