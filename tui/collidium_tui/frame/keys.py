"""The keys that mean something now: for the help and for the palette."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from textual.binding import Binding
from textual.dom import DOMNode
from textual.screen import Screen


@dataclass(frozen=True, slots=True)
class Key:
    """A key, what it does, and on whose behalf."""

    #: As it is shown.
    key: str
    binding: Binding
    node: DOMNode

    @property
    def does(self) -> str:
        """What it does: in full where the footer has no room for it."""
        return self.binding.tooltip or self.binding.description

    @property
    def everywhere(self) -> bool:
        """Whether it is a key of the whole console."""
        return self.node is self.node.app


def keys_of(screen: Screen[Any]) -> Iterator[Key]:
    """The console's own keys on a screen with what has the focus there, without those that Textual has."""
    listed = set()
    for active in screen.active_bindings.values():
        if active.binding.action in listed or not active.binding.description:
            continue
        if _is_own(active.node, active.binding):
            listed.add(active.binding.action)
            yield Key(screen.app.get_key_display(active.binding), active.binding, active.node)


def _is_own(node: DOMNode, binding: Binding) -> bool:
    ours = [kind for kind in type(node).__mro__ if not kind.__module__.startswith("textual.")]
    declared = [Binding.make_bindings(vars(kind).get("BINDINGS", [])) for kind in ours]
    return any(binding.action == each.action for bindings in declared for each in bindings)
