"""Models that the platform runs: their files, their queue with leases, and the processes that run them.

What becomes of their predictions is :mod:`collidium.submissions`.
"""

__all__ = ["model_files", "model_queue", "model_runners"]
