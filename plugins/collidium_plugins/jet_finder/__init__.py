"""Jets: calorimeter deposits clustered by anti-kt, with the flavour of the hadrons in them.

The built-in pipeline writes the table with its others; ``collidium jets DIR`` adds it to a dataset that has
none. docs/datasets.md says how jets are made. Importing this imports nothing heavy.
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
