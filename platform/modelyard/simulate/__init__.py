"""Experiments in virtual time that run the production rules, never a copy of them."""
