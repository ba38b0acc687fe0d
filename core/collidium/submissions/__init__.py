"""Submissions: who may submit, scores, ranks and rewards, rulings, rescoring, leaderboards and histories.

Scoring itself is :mod:`collidium.scoring`.
"""

__all__ = [
    "admissions",
    "fronts",
    "giving_back",
    "histories",
    "leaderboard",
    "model_runner",
    "notices",
    "rank_intervals",
    "reading",
    "receiving",
    "replay",
    "representatives",
    "reruns",
    "rescoring",
    "results",
    "rulings",
    "scores",
    "submit",
    "teams",
    "uploads",
    "waiting",
]
