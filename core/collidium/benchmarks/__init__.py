"""Benchmarks: the task list, versions and phases of truth, submissions, leaderboards and rewards.

Scoring itself is :mod:`collidium.scoring`. Import the modules: this package has no names of its own.
"""
