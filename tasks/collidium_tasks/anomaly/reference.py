"""Writes the training features of the isolation forest.

    for channel in ttbar zmumu zee; do
        collidium simulate --pipeline acts --channel $channel --events 400 --seed 271828 --output $channel
    done
    python -m collidium_tasks.anomaly.reference ttbar zmumu zee

Events of a mix to be scored have another seed.
"""

from __future__ import annotations

import sys
from pathlib import Path

from collidium_tasks.anomaly.baselines import NAMES, REFERENCE, Floats, features
from collidium_tasks.anomaly.card import CARD
from collidium_tasks.common import whole_table


def features_of(directory: Path) -> Floats:
    """Features of all events of a dataset in the hosted layout, shape (events, features)."""
    return features({table: whole_table(directory, table) for table in CARD.inputs})


def write(directories: list[Path]) -> None:
    """Write the features of all directories next to this module."""
    rows = [row for directory in directories for row in features_of(directory).tolist()]
    lines = [",".join(NAMES), *(",".join(f"{value:.5g}" for value in row) for row in rows)]
    path = Path(__file__).with_name(REFERENCE)
    path.write_text("\n".join(lines) + "\n", encoding="ascii")


if __name__ == "__main__":
    write([Path(argument) for argument in sys.argv[1:]])
