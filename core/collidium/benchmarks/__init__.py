"""Benchmarks: the task list, challenges and their end, versions of truth, submissions, leaderboards, rewards.

Scoring itself is :mod:`collidium.scoring`. Import the modules: this package has no names of its own.
"""
