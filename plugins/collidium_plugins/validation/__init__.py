"""Validation: a dataset's tracking, calorimeters and generator next to reference figures.

``collidium validate DIR`` reads tables alone, whatever made them. :mod:`.quantities` lists what is compared,
with :mod:`.tracking`; :mod:`.histograms` fills and compares, :mod:`.events` has what follows from several
columns, ``references/`` the figures of the Open Data Detector. Importing this imports nothing heavy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from collidium import hookspecs

if TYPE_CHECKING:
    import click


@hookspecs.hookimpl
def collidium_commands() -> Sequence[click.Command]:
    from collidium_plugins.validation.commands import validate

    return [validate]
