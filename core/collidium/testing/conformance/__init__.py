"""Checks of implementations against their contracts, with or without pytest.

Each function raises :class:`Nonconforming` with the broken promise. Asynchronous functions close the
implementation, because closing is part of the contract.

::

    async def test_my_storage_conforms(tmp_path):
        await check_storage(MyStorage(), tmp_path)
"""

from collidium.testing.conformance.executor import check_executor
from collidium.testing.conformance.promise import Nonconforming
from collidium.testing.conformance.providers import check_identity_provider, check_storage
from collidium.testing.conformance.runner import check_runner
from collidium.testing.conformance.task import check_task

__all__ = [
    "Nonconforming",
    "check_executor",
    "check_identity_provider",
    "check_runner",
    "check_storage",
    "check_task",
]
