"""Werkzeug: URL rules that compile their builder on first use.

A rule compiles a function that builds its URLs (https://github.com/pallets/werkzeug/pull/1281), which is most
of the cost of creating the rule, and the server builds the URLs of few rules. No issue is known; it can go
when Werkzeug compiles lazily.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Final

from quart.routing import QuartRule

TESTED: Final = {"werkzeug": ("3.1.0", "3.1.9")}


class Rule(QuartRule):
    """A URL rule that compiles its builder on first use."""

    def _compile_builder(self, append_unknown: bool = True) -> Callable[..., tuple[str, str]]:
        compiled = cache(partial(super()._compile_builder, append_unknown))
        return lambda *arguments, **values: compiled()(*arguments, **values)
