"""Benchmarks: the tasks and their leaderboards, what is to be verified, phases to be closed."""
