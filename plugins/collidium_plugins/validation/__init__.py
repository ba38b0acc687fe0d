"""Validation of simulated datasets: tracking, calorimeters and generator are compared with references.

``collidium validate DIR`` reads the tables of any dataset. :mod:`.quantities` and :mod:`.tracking` declare
the quantities, :mod:`.events` computes what several of them use, :mod:`.histograms` fills and compares
histograms, :mod:`.report` reads datasets and references, and :mod:`.page` renders HTML. ``references/`` has
the values of the Open Data Detector.
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
