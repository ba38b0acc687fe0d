"""The steps of a request, each done by the holder of its lease. Every step may safely be repeated.

A step reads its request and returns an outcome; it changes nothing of the request itself.
"""

from collidium.simulations.steps.polling import outcome_of_invalid, outcome_of_report, poll
from collidium.simulations.steps.working import outcome_of, scratch_of, stop, work

__all__ = ["outcome_of", "outcome_of_invalid", "outcome_of_report", "poll", "scratch_of", "stop", "work"]
