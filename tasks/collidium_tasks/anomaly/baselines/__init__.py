"""Baselines from measured quantities only."""
