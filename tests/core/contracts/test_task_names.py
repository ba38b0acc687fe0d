"""Names of tasks stand in addresses and in folders."""

from __future__ import annotations

from dataclasses import replace

import pytest

from collidium.contracts.task import TAKEN_NAMES
from collidium_tasks.tracking import CARD


@pytest.mark.parametrize("name", [*TAKEN_NAMES, "", "Tracking", "../tracking", "9lives", "x" * 65, "ünder"])
def test_a_name_that_addresses_cannot_have_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="task name"):
        replace(CARD, name=name)
