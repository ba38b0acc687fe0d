"""The contracts: the examples in their docstrings, and names of tasks."""

from __future__ import annotations

import doctest
from dataclasses import replace
from importlib import import_module
from pkgutil import iter_modules

import pytest

from collidium import contracts
from collidium.contracts.task import TAKEN_NAMES
from collidium_tasks.tracking import CARD

MODULES = [module.name for module in iter_modules(contracts.__path__)]


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_the_contracts_run(name: str) -> None:
    assert not doctest.testmod(import_module(f"{contracts.__name__}.{name}")).failed


def test_the_contracts_have_examples() -> None:
    modules = [import_module(f"{contracts.__name__}.{name}") for name in MODULES]
    assert sum(doctest.testmod(module).attempted for module in modules) >= 10


@pytest.mark.parametrize("name", [*TAKEN_NAMES, "", "Tracking", "../tracking", "9lives", "x" * 65, "ünder"])
def test_a_name_that_addresses_cannot_have_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="task name"):
        replace(CARD, name=name)
