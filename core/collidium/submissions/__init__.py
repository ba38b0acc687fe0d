"""Submissions: who may submit, scores, ranks and rewards, rulings, rescoring, leaderboards and histories.

Scoring itself is :mod:`collidium.scoring`.
"""
