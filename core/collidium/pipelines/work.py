"""The output directory of a simulation: files from which a run can continue, and the tables.

::

    DIR/.collidium/lock            locked while a run works in DIR
    DIR/.collidium/order.json      identity of the simulation
    DIR/.collidium/work/           working directory of stages, deleted when all are finished
    DIR/.collidium/stages/*.json   finished stages, with a list of their output
    DIR/.collidium/finished.json   the result of the whole simulation
    DIR/logs/<stage>.log

The tables of the last stage are checked and put into DIR atomically.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, Final

from collidium import __version__
from collidium.contracts.pipeline import TABLES, Stage
from collidium.datasets import cards
from collidium.datasets.cards import CARD, DatasetFile
from collidium.datasets.output import check_output
from collidium.errors import UnusableDataset
from collidium.files import durable, untrusted
from collidium.files.held import locked
from collidium.order import ORDER_FIELDS, order_facts, order_title
from collidium.pipelines.production import CannotSimulate, Production

HIDDEN: Final = ".collidium"
#: Maximum number of files that a stage may leave.
MAX_NAMES: Final = 100_000
#: Maximum size of a record, which lists the output of a stage.
_LONGEST: Final = 64 * 1024**2
_DATA: Final = "data"
#: Fields that records of earlier releases may lack.
_DEFAULTS: Final = {field.name: field.default for field in ORDER_FIELDS if not field.is_required}


class Work:
    """The hidden directory below an output directory, and the logs next to it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.hidden = directory / HIDDEN
        self.place = self.hidden / "work"
        self.logs = directory / "logs"

    @contextmanager
    def held(self) -> Iterator[None]:
        """Lock the directory. Raises CannotSimulate if another process has locked it."""
        self.hidden.mkdir(parents=True, exist_ok=True)
        with locked(self.hidden / "lock", wait=False) as alone:
            if not alone:
                raise CannotSimulate(
                    f"another `collidium simulate` works in {self.directory}: wait for it, or choose another "
                    "--output"
                )
            yield

    # -- what is simulated here ---------------------------------------------------------------------------

    @property
    def started(self) -> Mapping[str, Any] | None:
        """The identity of the simulation here, None if none was started."""
        return _completed(_read(self.hidden / "order.json"))

    def refuse_anything_else(self, production: Production) -> None:
        """Raise CannotSimulate if the directory has another simulation or other files."""
        started, wanted = self.started, production.identity
        if started is None:
            self._refuse_what_is_there(production)
        elif differing := {name for name in wanted if started.get(name) != wanted[name]}:
            there = ", ".join(f"{name} {started.get(name)}" for name in wanted if name in differing)
            here = ", ".join(f"{wanted[name]}" for name in wanted if name in differing)
            raise CannotSimulate(
                f"{self.directory} has another simulation, with {there} (not {here}): choose another "
                "--output, or delete that one"
            )

    def begin(self, production: Production) -> None:
        """Record the simulation."""
        if self.started is None:
            # Without a record it is unknown to which order finished stages belong.
            for path in (self.place, self.hidden / "stages"):
                _remove(path)
            durable.replace(self.hidden / "order.json", _json(production.identity))
        for folder in (self.place, self.place / "tmp", self.hidden / "stages", self.logs):
            folder.mkdir(exist_ok=True)

    def _refuse_what_is_there(self, production: Production) -> None:
        names = [path.name for path in self.directory.glob("*.parquet")] if production.flat else []
        names += (
            [] if production.flat else [n for n in ("data", "README.md") if (self.directory / n).exists()]
        )
        if names:
            raise CannotSimulate(
                f"{self.directory} has {names[0]} already, which no simulation made: choose another --output"
            )

    # -- stages -------------------------------------------------------------------------------------------

    def is_finished(self, stage: Stage) -> bool:
        """Whether the stage was finished, and all of its output still exists."""
        marker = _read(self._marker(stage))
        return marker is not None and marker == _listing(self.place, stage.outputs)

    def finish(self, stage: Stage) -> None:
        """Sync the output of a stage to disk, and record that it is finished.

        Raises CannotSimulate if output is missing.
        """
        missing = self._lacking(stage.outputs)
        if missing:
            raise CannotSimulate(
                f"stage {stage.name} ended, and left no {' and no '.join(missing)}; its log: "
                f"{self.log(stage)}"
            )
        for path in _files(self.place, stage.outputs):
            durable.sync(path)
        for folder in {path.parent for path in _files(self.place, stage.outputs)}:
            durable.sync(folder)
        durable.replace(self._marker(stage), _json(_listing(self.place, stage.outputs)))

    def prepare(self, stage: Stage) -> None:
        """Delete earlier output of a stage. Raises CannotSimulate if its input is missing."""
        missing = self._lacking(stage.inputs)
        if missing:
            raise CannotSimulate(
                f"stage {stage.name} needs {' and '.join(missing)}, which no stage before it leaves"
            )
        self._marker(stage).unlink(missing_ok=True)
        if not stage.resumes:
            for output in stage.outputs:
                _remove(self.place / output)

    def log(self, stage: Stage) -> Path:
        """Return the log file of a stage."""
        return self.logs / f"{stage.name}.log"

    def _lacking(self, paths: Sequence[str]) -> list[str]:
        return [path for path in paths if not any(_files(self.place, [path]))]

    def _marker(self, stage: Stage) -> Path:
        return self.hidden / "stages" / f"{stage.name}.json"

    # -- the end ------------------------------------------------------------------------------------------

    @property
    def finished(self) -> Mapping[str, Any] | None:
        """The result of the simulation, None if it is not finished."""
        return _completed(_read(self.hidden / "finished.json"))

    def finish_all(self, result: Mapping[str, Any]) -> None:
        """Record the result of the simulation, and delete the working directory."""
        durable.replace(self.hidden / "finished.json", _json(result))
        for path in (self.place, self.hidden / "stages"):
            _remove(path)


def _files(root: Path, paths: Sequence[str]) -> Iterator[Path]:
    """Yield the files at or below paths, without links, which may lead out of the directory.

    Raises CannotSimulate for a folder with more than :data:`MAX_NAMES` names in it and below.
    """
    for start in (root / path for path in paths):
        below = list(islice(start.rglob("*"), MAX_NAMES + 1)) if start.is_dir() else [start]
        if len(below) > MAX_NAMES:
            raise CannotSimulate(f"{start} has more than {MAX_NAMES:,} files: no stage may leave so many")
        for path in sorted(below):
            if path.is_file() and not path.is_symlink():
                yield path


def _listing(root: Path, paths: Sequence[str]) -> dict[str, int]:
    """Return the sizes of files by path."""
    return {path.relative_to(root).as_posix(): path.stat().st_size for path in _files(root, paths)}


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _read(path: Path) -> dict[str, Any] | None:
    """Read a record; return None if it is missing or invalid."""
    try:
        value = json.loads(untrusted.read(path, _LONGEST).decode())
    except (FileNotFoundError, untrusted.NotRegular, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _completed(record: dict[str, Any] | None) -> Mapping[str, Any] | None:
    return record and _DEFAULTS | record


def _json(value: object) -> str:
    return json.dumps(value, indent=2)


def place(production: Production, work: Work) -> list[DatasetFile]:
    """Check the tables and put them into the output directory; return their files. Safe to repeat.

    Raises CannotSimulate if a table does not have exactly the ordered events. Blocks.
    """
    tables = work.place / TABLES
    left = _files(work.place, [TABLES])
    found = [path for path in left if path.parent == tables and path.suffix == ".parquet"]
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
    durable.sync(work.directory)
    return described


def _place_flat(files: Sequence[tuple[Path, DatasetFile]], work: Work) -> list[DatasetFile]:
    placed = []
    for source, file in files:
        new = work.hidden / source.name
        _link(source, new)
        new.replace(work.directory / source.name)
        placed.append(DatasetFile(source.name, file.sha256, file.size_bytes, file.rows))
    durable.sync(work.directory)
    return placed


def _place_data(files: Sequence[tuple[Path, DatasetFile]], work: Work) -> None:
    """Put all tables into place atomically, as one directory."""
    data = work.directory / _DATA
    if data.exists():
        return  # by an earlier run, which was interrupted later
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


def dataset_card(production: Production, files: Sequence[DatasetFile]) -> str:
    """Return the ``README.md``: front matter for a hub, the order, and the pipeline."""
    order, pipeline = production.order, production.pipeline
    events = production.events
    facts = {
        **order_facts(order),
        "event ids": f"{events.start} to {events.stop - 1}",
        "pipeline": f"{pipeline.name}, version {pipeline.version}",
        **(pipeline.facts_of(order.channel)),
        **(production.lhe.facts if production.lhe else {}),
        "made with": f"Collidium {__version__}",
    }
    generated = None if production.lhe else (pipeline.channels or {}).get(order.channel)
    title = order_title(order)
    tags = ["collidium", "particle-physics", "simulation", order.channel]
    description = f"Collision events, simulated by the pipeline {pipeline.name}: {pipeline.title}."
    description += f" Generated: {generated}." if generated else ""
    body = f"""# {cards.escaped(title)}

{cards.escaped(description)} Each row is one
event; every column but `event_id` holds a list, with one entry for each particle, hit, deposit or track.

{cards.table(("", ""), facts.items())}

The same channel, pileup, seed and version of the pipeline give the same events again, each by its id.

## Files

{cards.file_table(files)}"""
    splits = {order.config: cards.splits(events.start, len(events))}
    return cards.card(cards.front_matter(title, tags, order.events, files, splits), body)
