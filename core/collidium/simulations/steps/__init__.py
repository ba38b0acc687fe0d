"""What is done at each step of a request, by whoever holds its lease; every step may be done again."""

from collidium.simulations.steps.polling import poll
from collidium.simulations.steps.working import work

__all__ = ["poll", "work"]
