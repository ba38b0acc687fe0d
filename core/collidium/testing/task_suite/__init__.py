"""The conformance suite of benchmark tasks: named promises, each checked on a task and a few events.

One suite, three ways to run it::

    collidium task check NAME                          # an installed task, with a verdict for people
    pytest --collidium-task NAME                       # the same as tests
    check_task(MyTask(), tables)                       # collidium.testing.conformance, in a test of yours

:data:`~collidium.testing.task_suite.checks.CHECKS` lists the promises. Hostile predictions are made by
hypothesis, which has to be installed; pytest is not needed.
"""

from collidium.testing.task_suite.checks import CHECKS
from collidium.testing.task_suite.sample import sample_tables
from collidium.testing.task_suite.subject import Subject
from collidium.testing.task_suite.suite import Outcome, Suite

__all__ = ["CHECKS", "Outcome", "Subject", "Suite", "sample_tables"]
