"""Leaderboards: ranks, Pareto fronts, and the history of the best scores."""
