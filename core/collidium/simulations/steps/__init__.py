"""The steps of a request, each done by the holder of its lease. Every step may safely be repeated."""

from collidium.simulations.steps.polling import poll
from collidium.simulations.steps.working import work

__all__ = ["poll", "work"]
