"""What is done at each step of a request, by the holder of its lease; every step may be done again."""

from collidium.simulations.steps.polling import poll
from collidium.simulations.steps.working import work

__all__ = ["poll", "work"]
