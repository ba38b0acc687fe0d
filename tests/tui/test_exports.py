"""What plugins of the console import from its package."""

from __future__ import annotations

import inspect

import collidium_tui


def test_everything_exported_is_there_and_documented() -> None:
    """Names load when they are asked for, so a module that has moved is noticed here alone."""
    for name in collidium_tui.__all__:
        assert inspect.getdoc(getattr(collidium_tui, name)), name
