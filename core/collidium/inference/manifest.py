"""The manifest of a model, which maps columns to inputs of the graph and its outputs to predictions.

::

    contract = 1
    task = "jets"
    batch = "events"                     # or "event": one event per call
    license = "Apache-2.0"               # optional

    [inputs]                             # input of the graph = its source
    d0 = { source = "tracks.d0", dtype = "float32", unit = "mm" }
    jet = { source = "jets", dtype = "int64", layout = "row_splits" }
    x = { source = "features/trees", dtype = "float32" }

    [outputs]                            # output of the graph = one column, or one for each of its columns
    probabilities = ["prob_light", "prob_c", "prob_b"]

    [postprocess]                        # tracks from edges, if the task supports it
    kind = "components"
    edges = "edges"                      # int64, shape (2, edges): indices of hits in the event
    scores = "scores"                    # shape (edges,)
    cut = 0.5                            # edges of a higher score connect
    min_hits = 3
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Literal

import msgspec
import pyarrow as pa
from msgspec import Meta, Struct

from collidium.contracts.model import Feature, ModelInterface
from collidium.contracts.tables import is_list
from collidium.contracts.task import Task
from collidium.datasets.schemas import EXTENDED
from collidium.errors import InvalidInput
from collidium.inference.messages import Components, Name

#: Maximum bytes of a manifest, and maximum number of inputs or outputs.
MAX_BYTES: Final = 64 * 1024
MAX_NAMES: Final = 256
#: Maximum dots in a line, and in the header of a table: the time to parse a key grows with the square of its
#: parts, to which those of its table are added.
_MAX_DOTS: Final = 300
_MAX_DOTS_OF_TABLES: Final = 20
#: Maximum length of padded lists.
MAX_PADDED: Final = 100_000
_PADDED: Final = re.compile(r"(padded|mask):([1-9]\d{0,5})")

# fmt: off
Number = Literal[
    "float16", "float32", "float64", "bool",
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
]
# fmt: on


class Input(Struct, frozen=True, forbid_unknown_fields=True):
    """An input of the graph.

    Parameters
    ----------
    source
        ``table.column``; a table, for its layout; or ``features/NAME``.
    dtype
        The type of the graph's input, to which columns are converted.
    layout
        ``flat``: all rows of a batch, shape (rows,); nested lists are flattened. ``row_splits``: int64
        offsets, shape (lists + 1,), of the events of a table or the lists of a column. ``segment``: int64
        index of the event, or of the list, of each row. ``padded:P``: shape (lists, P), padded with 0 or cut.
        ``mask:P``: bool, True where a padded list has a value.
    unit
        The unit of the column, which is checked.
    """

    source: str
    dtype: Number
    layout: str = "flat"
    unit: str = ""

    @property
    def table(self) -> str:
        return self.source.partition(".")[0]

    @property
    def column(self) -> str:
        """Empty for a table and for a feature."""
        return self.source.partition(".")[2]

    @property
    def feature(self) -> str:
        """Empty for columns and tables."""
        return self.source.removeprefix("features/") if self.source.startswith("features/") else ""

    @property
    def kind(self) -> str:
        return self.layout.partition(":")[0]

    @property
    def padded(self) -> int:
        """P of ``padded:P`` and ``mask:P``; 0 for others."""
        return int(self.layout.partition(":")[2] or 0)

    @property
    def is_nested(self) -> bool:
        """Whether the column has a list for each row of its table."""
        return is_list(_field(self.table, self.column).type.value_type)

    def tail(self, features: Mapping[str, Feature]) -> tuple[int, ...]:
        """The lengths of the axes after the first."""
        if self.feature:
            return features[self.feature].shape
        return (self.padded,) if self.padded else ()


class Manifest(Struct, frozen=True):
    """A valid manifest."""

    task: str
    batch: Literal["event", "events"]
    inputs: dict[str, Input]
    #: Output of the graph -> the predicted columns.
    outputs: dict[str, tuple[str, ...]]
    postprocess: Components | None = None
    kind: Literal["onnx"] = "onnx"
    contract: Literal[1] = 1
    #: Licence of the model, an SPDX identifier, which is shown with its scores.
    license: str = ""

    @property
    def wanted(self) -> tuple[str, ...]:
        """The outputs of the graph that are read."""
        made = (self.postprocess.edges, self.postprocess.scores) if self.postprocess else ()
        return (*self.outputs, *made)


def summary(content: bytes) -> dict[str, Any]:
    """Describe a valid manifest, with the fields of :class:`~collidium.records.ModelGraph`."""
    manifest = _convert(_toml(content), _Problems())
    outputs = {name: ", ".join(columns) for name, columns in manifest.outputs.items()}
    if (made := manifest.postprocess) is not None:
        outputs |= {made.edges: "edges between hits", made.scores: f"scores of edges, cut at {made.cut:g}"}
    inputs = {
        name: ", ".join(filter(None, (given.source, given.unit, given.dtype, given.layout)))
        for name, given in manifest.inputs.items()
    }
    return {"inputs": inputs, "outputs": outputs, "batch": manifest.batch, "license": manifest.license}


def interface_of(task: Task) -> ModelInterface:
    """The interface of a task's models. Raises InvalidInput if the task accepts no models."""
    interface = task.model_interface()
    if interface is None:
        raise InvalidInput(f"task {task.card.name} takes predictions, not models")
    return interface


def read_manifest(content: bytes, task: Task) -> Manifest:
    """Read a manifest and check it against the task.

    Raises
    ------
    InvalidInput
        With all problems and their fields in ``errors``.
    """
    interface = interface_of(task)
    raw = _toml(content)
    problems = _Problems()
    manifest = _convert(raw, problems)
    if manifest.task != task.card.name and "task" not in problems.fields:
        problems.add("task", f"is {manifest.task!r}; the model is checked for {task.card.name}")
    problems.extend(_problems_of_inputs(manifest.inputs, interface))
    problems.extend(_problems_of_outputs(manifest, interface))
    problems.extend(_problems_of_batch(manifest, interface))
    problems.extend(_problems_of_names(manifest))
    problems.raise_if_any()
    return manifest


def task_of(content: bytes) -> str:
    """The name of the task in a manifest that may be invalid otherwise. Raises InvalidInput."""
    name = _toml(content).get("task")
    if not isinstance(name, str):
        raise InvalidInput("the manifest has problems", errors=[{"field": "task", "detail": "is missing"}])
    return name


def _toml(content: bytes) -> dict[str, Any]:
    if len(content) > MAX_BYTES:
        raise InvalidInput(f"the manifest has {len(content)} bytes; {MAX_BYTES} are allowed")
    for line in content.splitlines():
        limit = _MAX_DOTS_OF_TABLES if line.lstrip().startswith(b"[") else _MAX_DOTS
        if line.count(b".") > limit:
            raise InvalidInput(f"the manifest has a line of more than {limit} dots")
    try:
        return tomllib.loads(content.decode())
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"the manifest is not TOML: {error}") from None


class _Problems:
    def __init__(self) -> None:
        self._found: list[dict[str, str]] = []

    @property
    def fields(self) -> set[str]:
        return {problem["field"] for problem in self._found}

    def add(self, field: str, detail: str) -> None:
        self._found.append({"field": field, "detail": detail})

    def extend(self, found: Iterator[tuple[str, str]]) -> None:
        for field, detail in found:
            self.add(field, detail)

    def raise_if_any(self) -> None:
        if self._found:
            raise InvalidInput("the manifest has problems", errors=self._found)


def _convert(raw: Mapping[str, Any], problems: _Problems) -> Manifest:
    """Convert the valid part of a manifest, and add the problems of the rest."""

    def read(field: str, kind: Any, value: Any, default: Any = None) -> Any:
        try:
            return msgspec.convert(value, kind, strict=True)
        except (msgspec.ValidationError, ValueError) as error:  # the latter of numbers of 4,300 digits
            problems.add(field, str(error))
            return default

    for name in raw.keys() - set(Manifest.__struct_fields__):
        problems.add(name, "is not known")
    for name in {"contract", "task", "batch", "inputs", "outputs"} - raw.keys():
        problems.add(name, "is missing")

    def items(field: str, kind: Any) -> dict[str, Any]:
        entries = read(field, Annotated[dict[Name, Any], Meta(max_length=MAX_NAMES)], raw.get(field, {}), {})
        found = {name: read(f"{field}.{name}", kind, value) for name, value in entries.items()}
        return {name: value for name, value in found.items() if value is not None}

    columns = tuple[str, ...] | str
    outputs = {name: (of,) if isinstance(of, str) else of for name, of in items("outputs", columns).items()}
    read("contract", Literal[1], raw.get("contract", 1))
    read("kind", Literal["onnx"], raw.get("kind", "onnx"))
    postprocess = raw.get("postprocess")
    return Manifest(
        task=read("task", str, raw.get("task", ""), ""),
        batch=read("batch", Literal["event", "events"], raw.get("batch", "event"), "event"),
        inputs=items("inputs", Input),
        outputs=outputs,
        license=read("license", Annotated[str, Meta(max_length=100)], raw.get("license", ""), ""),
        postprocess=None if postprocess is None else read("postprocess", Components, postprocess),
    )


def _problems_of_inputs(inputs: Mapping[str, Input], interface: ModelInterface) -> Iterator[tuple[str, str]]:
    for name, given in inputs.items():
        field = f"inputs.{name}"
        if given.feature:
            if given.feature not in interface.features:
                yield (
                    field,
                    f"the task has no feature {given.feature!r}; it has {_listed(interface.features)}",
                )
            elif given.layout != "flat":
                yield field, "features have the layout flat"
            continue
        columns = interface.inputs.get(given.table)
        if columns is None:
            yield field, f"models read the tables {_listed(interface.inputs)}, not {given.table!r}"
        elif given.column and given.column not in columns:
            yield field, f"models read {_listed(columns)} of {given.table}, not {given.column!r}"
        else:
            yield from ((field, problem) for problem in _problems_of_layout(given))


def _problems_of_layout(given: Input) -> Iterator[str]:
    if given.layout not in ("flat", "row_splits", "segment") and not _PADDED.fullmatch(given.layout):
        yield "layout is flat, row_splits, segment, padded:P or mask:P"
        return
    if given.padded > MAX_PADDED:
        yield f"lists are padded to {MAX_PADDED} at most"
    unit = (
        (_field(given.table, given.column).metadata or {}).get(b"unit", b"").decode() if given.column else ""
    )
    if given.kind in ("flat", "padded"):
        if not given.column:
            yield f"layout {given.kind} is that of a column: {given.table}.COLUMN"
        elif given.unit != unit:
            yield f"{given.source} has " + (f"the unit {unit!r}" if unit else "no unit")
    elif given.column and not given.is_nested:
        yield f"{given.source} has one list for each event: write source = {given.table!r}"
    if given.kind in ("row_splits", "segment") and given.dtype != "int64":
        yield f"{given.kind} is int64"
    if given.kind == "mask" and given.dtype != "bool":
        yield "a mask is bool"


def _problems_of_outputs(manifest: Manifest, interface: ModelInterface) -> Iterator[tuple[str, str]]:
    made = [column for columns in manifest.outputs.values() for column in columns]
    if manifest.postprocess:
        made.append("track_id")
        if manifest.postprocess.kind not in interface.postprocess:
            yield "postprocess", "the task has none"
    for column in sorted(set(made) - set(interface.outputs)):
        yield "outputs", f"{column} is not predicted; {_listed(interface.outputs)} are"
    for column in interface.outputs:
        if made.count(column) != 1:
            yield "outputs", f"{column} is " + ("missing" if column not in made else "listed more than once")


def _problems_of_batch(manifest: Manifest, interface: ModelInterface) -> Iterator[tuple[str, str]]:
    if manifest.batch != "event":
        if manifest.postprocess:
            yield "batch", 'postprocess needs batch = "event"'
        if "seconds" in interface.measured.values():
            yield "batch", 'the task measures the time of events: batch = "event"'


def _problems_of_names(manifest: Manifest) -> Iterator[tuple[str, str]]:
    """Names that pages and terminals cannot show."""
    shown = {"inputs": manifest.inputs, "outputs": manifest.wanted, "license": [manifest.license]}
    for field, names in shown.items():
        for name in names:
            if not name.isprintable():
                yield field, f"{name!r} has characters that cannot be printed"


def _field(table: str, column: str) -> pa.Field[Any]:
    """The schema of a column; unknown ones have numbers without a unit."""
    schema = EXTENDED.get(table)
    index = -1 if schema is None else schema.get_field_index(column)
    return pa.field(column, pa.list_(pa.float32())) if schema is None or index < 0 else schema.field(index)


def _listed(names: Any) -> str:
    return ", ".join(names) or "none"
