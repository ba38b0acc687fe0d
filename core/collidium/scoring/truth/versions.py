"""Versions of a task's truth, and their files.

Truth is made once from a dataset, cut into blocks of whole events, and never served. A version is a directory
with ``manifest.json``, which describes it, and one file for each table (:mod:`.tables`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from collidium.contracts.task import EventRange
from collidium.errors import ConfigurationError
from collidium.files.durable import sha256_of
from collidium.files.held import held_directory
from collidium.scoring.blocks import TruthBlock
from collidium.scoring.truth.tables import TruthTable

MANIFEST: Final = "manifest.json"
#: How tables are stored; truth in another form is imported again.
FORM: Final = "arrow-2"


@dataclass(frozen=True, slots=True)
class Truth:
    """One version of a task's truth; :meth:`open` opens it."""

    directory: Path
    task: str
    #: Short hash of the content and the origin of the truth.
    version: str
    dataset: str
    revision: str
    events: EventRange
    tables: Mapping[str, TruthTable]
    blocks: tuple[TruthBlock, ...]
    scorer_version: str
    #: When it was made, RFC 3339.
    created_at: str
    #: The metrics of the task's baseline; empty for a task without one.
    floors: Mapping[str, float]
    #: The task's notes on how it was made, by name.
    notes: Mapping[str, str]
    form: str = FORM
    #: A hash of its values. It would confirm guesses of hidden truth: it is in no answer.
    content: str = ""

    @classmethod
    def read(cls, directory: Path) -> Truth:
        """Read the manifest. Raises :class:`~collidium.errors.ConfigurationError`."""
        try:
            return cls._from_manifest(directory, json.loads((directory / MANIFEST).read_bytes()))
        except OSError as error:
            raise ConfigurationError(f"truth in {directory} is not there: {error}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise ConfigurationError(
                f"{directory / MANIFEST} is not a manifest of truth: {error!r}"
            ) from error

    @classmethod
    def open(cls, directory: Path) -> Truth:
        """Read the manifest and check that its files exist with the right sizes.

        Raises :class:`~collidium.errors.ConfigurationError`.
        """
        truth = cls.read(directory)
        try:
            sizes = {name: path.stat().st_size for name, path in truth.paths.items()}
        except OSError as error:
            raise ConfigurationError(f"truth in {directory} is incomplete: {error}") from error
        for name, size in sizes.items():
            if size != truth.tables[name].bytes:
                raise ConfigurationError(
                    f"truth table {truth.paths[name]} has {size} bytes, not {truth.tables[name].bytes}"
                )
        return truth

    @property
    def paths(self) -> dict[str, Path]:
        """The file of each table."""
        return {name: table_path(self.directory, name) for name in self.tables}

    def rows(self, table: str) -> int:
        """Rows of a table, of all events."""
        return self.tables[table].rows

    def verify(self) -> None:
        """Read every file and compare its hash; raises :class:`~collidium.errors.ConfigurationError`."""
        for name, path in self.paths.items():
            if sha256_of(path) != self.tables[name].sha256:
                raise ConfigurationError(f"truth table {path} does not match its manifest: import it again")

    def as_dict(self) -> dict[str, Any]:
        """The manifest."""
        blocks = [[block.events.start, block.events.stop, block.rows] for block in self.blocks]
        fields = asdict(self) | {"blocks": blocks}
        del fields["directory"]
        return fields

    def save(self) -> None:
        """Write the manifest into the directory."""
        (self.directory / MANIFEST).write_text(json.dumps(self.as_dict(), indent=1, allow_nan=False) + "\n")

    def move_to(self, place: Path) -> Truth:
        """Move the directory to ``place`` atomically; an existing version there is kept if it is whole."""
        self.save()
        self.directory.chmod(0o755)
        try:
            self.directory.rename(place)
        except OSError:
            # A directory with files is never replaced: another process was first.
            if not place.exists():
                raise
            if not _is_whole(place):  # its files may be the storage's own
                remove_used(place)
                self.directory.rename(place)
        return Truth.open(place)

    @classmethod
    def _from_manifest(cls, directory: Path, manifest: Mapping[str, Any]) -> Truth:
        if manifest["form"] != FORM:
            raise ValueError(f"its form is {manifest['form']}, not {FORM}: import it again")
        read = {
            "directory": directory,
            "events": EventRange(**manifest["events"]),
            "tables": {name: TruthTable(**table) for name, table in manifest["tables"].items()},
            "blocks": tuple(
                TruthBlock(index, EventRange(start, stop), rows)
                for index, (start, stop, rows) in enumerate(manifest["blocks"])
            ),
        }
        return cls(**(dict(manifest) | read))


def table_path(directory: Path, table: str) -> Path:
    """The file of a truth table."""
    return directory / f"{table}.arrow"


def _is_whole(directory: Path) -> bool:
    try:
        Truth.open(directory).verify()
    except ConfigurationError:
        return False
    return True


def remove_used(directory: Path) -> None:
    """Remove a version; processes that have mapped its files keep them."""
    with held_directory(directory.parent) as held:
        directory.rename(held / directory.name)
