"""A replica's phases, from scheduled to ready to gone."""
