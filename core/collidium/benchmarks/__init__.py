"""Benchmarks: the task list, truth, scoring, submissions, leaderboards and rewards.

Import the modules, not this package's names: scoring processes import some of them and need neither the
database nor the server.
"""
