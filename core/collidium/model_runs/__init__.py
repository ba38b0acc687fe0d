"""Models that the platform runs: their files, their queue with leases, and the processes that run them.

What becomes of their predictions is :mod:`collidium.submissions`.
"""

from collidium.model_runs.models import Evaluation

__all__ = ["Evaluation", "model_files", "model_queue", "model_reruns", "model_runners"]
