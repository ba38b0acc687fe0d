"""The benchmark tasks that the platform ships, registered through the same hooks as third-party tasks.

A task is one module with card, tally and baselines, or a package whose ``__init__`` has the class and the
hook.
"""
