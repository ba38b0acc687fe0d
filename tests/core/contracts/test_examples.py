"""The examples in the docstrings of the contracts."""

from __future__ import annotations

import doctest
from importlib import import_module
from pkgutil import iter_modules

import pytest

from collidium import contracts

MODULES = [module.name for module in iter_modules(contracts.__path__)]


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_the_contracts_run(name: str) -> None:
    assert not doctest.testmod(import_module(f"{contracts.__name__}.{name}")).failed


def test_the_contracts_have_examples() -> None:
    modules = [import_module(f"{contracts.__name__}.{name}") for name in MODULES]
    assert sum(doctest.testmod(module).attempted for module in modules) >= 10
