"""From the tables of the last stage to the output directory: checked, whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from collidium.contracts.pipeline import TABLES
from collidium.datasets.cards import CARD, DatasetFile
from collidium.datasets.output import check_output
from collidium.errors import UnusableDataset
from collidium.files.durable import sync_directory
from collidium.pipelines.card import dataset_card
from collidium.pipelines.errors import CannotSimulate
from collidium.pipelines.production import Production
from collidium.pipelines.work import Work

_DATA: Final = "data"


def place(production: Production, work: Work) -> list[DatasetFile]:
    """Check the tables and put them into the output directory; safe to repeat. Returns what they are there.

    Raises CannotSimulate where a table does not hold exactly the events that were ordered. Blocks.
    """
    tables = work.place / TABLES
    found = [path for path in sorted(tables.iterdir()) if path.suffix == ".parquet"]
    try:
        if not found:
            raise UnusableDataset(f"the last stage left no tables in {TABLES}/")
        files = check_output(found, tables, production.order.config, production.events)
    except UnusableDataset as error:
        raise CannotSimulate(
            f"pipeline {production.pipeline.name} did not make what was ordered: {error}"
        ) from error
    if production.flat:
        return _place_flat(files, work)
    _place_data(files, work)
    described = [file for _, file in files]
    card = work.hidden / CARD
    card.write_text(dataset_card(production, described), "utf-8")
    card.replace(work.directory / CARD)
    sync_directory(work.directory)
    return described


def _place_flat(files: Sequence[tuple[Path, DatasetFile]], work: Work) -> list[DatasetFile]:
    placed = []
    for source, file in files:
        beside = work.hidden / source.name
        _link(source, beside)
        beside.replace(work.directory / source.name)
        placed.append(DatasetFile(source.name, file.sha256, file.size_bytes, file.rows))
    sync_directory(work.directory)
    return placed


def _place_data(files: Sequence[tuple[Path, DatasetFile]], work: Work) -> None:
    """All tables appear at once, as one directory."""
    data = work.directory / _DATA
    if data.exists():
        return  # an earlier run got as far as this, and was stopped after it
    whole = work.hidden / "whole"
    shutil.rmtree(whole, ignore_errors=True)
    for source, file in files:
        target = whole / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        _link(source, target)
    (whole / _DATA).rename(data)
    whole.rmdir()


def _link(source: Path, target: Path) -> None:
    target.unlink(missing_ok=True)
    try:
        os.link(source, target)
    except OSError:  # a file system without links
        shutil.copyfile(source, target)
