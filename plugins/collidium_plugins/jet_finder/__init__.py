"""Jets: anti-kt clusters of calorimeter cells, with the flavour of their hadrons.

The built-in pipeline writes the table ``jets``; ``collidium jets DIR`` adds it to other datasets.
docs/datasets.md describes how jets are made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from collidium import hookspecs

if TYPE_CHECKING:
    import click

#: The version that the extra ``sim`` installs.
FASTJET: Final = "3.5.2"
#: Distance parameter of anti-kt.
RADIUS: Final = 0.4


@hookspecs.hookimpl
def collidium_commands() -> Sequence[click.Command]:
    from collidium_plugins.jet_finder.commands import jets

    return [jets]
