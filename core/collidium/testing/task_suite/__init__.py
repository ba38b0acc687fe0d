"""The conformance suite of benchmark tasks: named promises, each checked on a task and a few events.

Run it in three ways::

    collidium task check NAME                          # an installed task, in a table
    pytest --collidium-task NAME                       # the same as tests
    check_task(MyTask(), tables)                       # collidium.testing.conformance, in your tests

:data:`~collidium.testing.task_suite.checks.CHECKS` lists the promises. Hostile predictions are generated
by hypothesis, which must be installed; pytest is not needed.
"""

from collidium.testing.task_suite.checks import CHECKS
from collidium.testing.task_suite.installed import sample_tables
from collidium.testing.task_suite.subject import Subject
from collidium.testing.task_suite.suite import Outcome, Suite

__all__ = ["CHECKS", "Outcome", "Subject", "Suite", "sample_tables"]
