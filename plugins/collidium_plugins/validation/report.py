"""Reads a dataset and references, and compares all quantities: the report is one JSON document."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from collidium.contracts.task import EventRange
from collidium.datasets import layout
from collidium.datasets.reading.dataset import Dataset, parquet_files
from collidium.datasets.reading.shards import EventTable, blocks_of, common_events
from collidium.datasets.reading.types import EventIds
from collidium.errors import InvalidInput, UnusableDataset
from collidium.runtime.progress import Progress, ProgressCount
from collidium_plugins.validation.events import EventBlock, MissingColumn
from collidium_plugins.validation.histograms import (
    Accumulator,
    Floats,
    Histogram,
    Quantity,
    Reference,
    compare,
)
from collidium_plugins.validation.quantities import QUANTITIES

#: Tables that are read if present; the first one is required.
_TABLES: Final[tuple[str, ...]] = ("particles", "tracker_hits", "measurements", "calo_hits", "tracks")
#: Format of reports and of reference files.
FORMAT: Final = "collidium-validation-1"

Report = dict[str, Any]


def validate(
    directory: Path,
    config: str | None = None,
    *,
    events: EventRange | None = None,
    reference: Path | None = None,
    extra: Sequence[Path] = (),
    progress: Progress | None = None,
) -> Report:
    """Compare the events of a dataset with a reference; memory is bounded by blocks of events.

    Parameters
    ----------
    directory
        The dataset's directory.
    config
        Name of a config; default: the only one.
    events
        The events to read; default: all.
    reference
        The directory of another dataset, or a JSON file in the format of reports; default: the values of the
        Open Data Detector for the config.
    extra
        JSON files in the same format with further quantities, such as a map of material.
    progress
        Called with the number of events done and the total.

    Returns
    -------
    dict
        A JSON document: ``quantities`` has titles, edges, values, standard errors, the reference, χ² per bin
        and the verdict of each; ``missing`` has the reason for each that cannot be computed.

    Raises
    ------
    UnusableDataset
        If the dataset cannot be read.
    InvalidInput
        If the reference is not a JSON file of this format.
    """
    chosen, tables, ids = _opened(directory, config, events)
    found, missing = _histograms(tables, ids, progress)
    references = _builtin(chosen)
    if reference is not None and reference.is_dir():
        _, other_tables, other_ids = _opened(reference)
        others, _ = _histograms(other_tables, other_ids, progress)
        references = {name: _as_reference(histogram, str(reference)) for name, histogram in others.items()}
    elif reference is not None:
        references = {name: _loaded(entry) for name, entry in _quantities_of(reference).items()}
    declared = {quantity.name: quantity for quantity in QUANTITIES}
    entries = {
        name: _entry(_described(declared[name]), histogram, references.get(name))
        for name, histogram in found.items()
    }
    for path in extra:
        for name, entry in _quantities_of(path).items():
            description = {key: entry.get(key, "") for key in ("title", "x", "y", "log")}
            loaded = _loaded(entry)
            described = description | {"kind": "mean", "labels": entry.get("labels", [])}
            entries[name] = _entry(described, loaded, references.get(name))
    verdicts = [entry["verdict"] for entry in entries.values()]
    return {
        "format": FORMAT,
        "config": chosen,
        "events": len(ids),
        "summary": {verdict: verdicts.count(verdict) for verdict in ("agrees", "disagrees", "no reference")},
        "quantities": entries,
        "missing": missing,
    }


def _opened(
    directory: Path, config: str | None = None, events: EventRange | None = None
) -> tuple[str, dict[str, EventTable], EventIds]:
    """Return the config, its tables and the ids of the events to read."""
    paths = sorted(parquet_files(directory))
    chosen = layout.choose(paths, config)
    there = layout.configs(paths)[chosen]
    dataset = Dataset(directory, chosen or None)
    tables = {name: dataset.table(name) for name in _TABLES if name in there}
    if _TABLES[0] not in tables:
        raise UnusableDataset(f"there is no table {_TABLES[0]}; there are: {', '.join(there)}")
    ids = common_events(tables)
    if events is not None:
        ids = ids[(ids >= events.start) & (ids < events.stop)]
    if not len(ids):
        raise UnusableDataset("there are no events")
    return chosen, tables, ids


def _histograms(
    tables: dict[str, EventTable], ids: EventIds, progress: Progress | None
) -> tuple[dict[str, Histogram], dict[str, str]]:
    """Return histograms, and the reasons for those that cannot be made."""
    accumulators = {quantity.name: Accumulator(quantity) for quantity in QUANTITIES}
    missing: dict[str, str] = {}
    count = ProgressCount(progress, len(ids))
    for block_ids, rows in blocks_of(tables, ids):
        block = EventBlock(rows, len(block_ids))
        for name, accumulator in accumulators.items():
            try:
                accumulator.add(block)
            except MissingColumn as error:
                missing[name] = str(error)
            except (ValueError, IndexError, pa.ArrowException) as error:
                raise UnusableDataset(
                    f"events {block_ids[0]} to {block_ids[-1]}: {name} cannot be made of them: {error}"
                ) from error
        count.add(len(block_ids))
    made = {name: each.result() for name, each in accumulators.items() if name not in missing}
    return made, missing


def _builtin(config: str) -> dict[str, Reference]:
    """Return the shipped references for a config."""
    folder = files("collidium_plugins.validation").joinpath("references")
    names = [
        name for name in ("any.json", "material.json", f"{config}.json") if folder.joinpath(name).is_file()
    ]
    documents = [json.loads(folder.joinpath(name).read_text("utf-8")) for name in names]
    return {name: _loaded(entry) for document in documents for name, entry in document["quantities"].items()}


def _quantities_of(path: Path) -> Mapping[str, Any]:
    try:
        quantities = json.loads(path.read_text("utf-8"))["quantities"]
        for entry in quantities.values():
            _loaded(entry)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidInput(
            f"{path} is not a file of quantities as written by `collidium validate --json`: {error!r}"
        ) from error
    return dict(quantities)


def _loaded(entry: Mapping[str, Any]) -> Reference:
    """Return a quantity of a JSON document. Raises ValueError, KeyError or TypeError."""
    edges, value = numbers(entry["edges"]), numbers(entry["value"])
    error = numbers(entry.get("error") or [None] * len(value))
    tolerance = entry.get("tolerance", 0.0)
    if not len(edges) - 1 == len(value) == len(error):
        raise ValueError(f"{len(edges)} edges, {len(value)} values, {len(error)} errors")
    return Reference(
        edges,
        value,
        error,
        np.ones(len(value)),
        tolerance=numbers(tolerance) if isinstance(tolerance, list) else float(tolerance),
        relative=bool(entry.get("relative")),
        side=entry.get("side", "both"),
        source=str(entry.get("source", "")),
    )


def _as_reference(histogram: Histogram, source: str) -> Reference:
    return Reference(histogram.edges, histogram.value, histogram.error, histogram.entries, source=source)


def _described(quantity: Quantity) -> dict[str, Any]:
    names = ("title", "x", "y", "kind", "log")
    return {name: getattr(quantity, name) for name in names} | {"labels": list(quantity.labels)}


def _entry(described: Mapping[str, Any], found: Histogram, reference: Reference | None) -> dict[str, Any]:
    compared = compare(found, reference)
    entry = {
        **described,
        "edges": _plain(found.edges),
        "value": _plain(found.value),
        "error": _plain(found.error),
        "entries": int(found.entries.sum()),
        "reference": None,
        "chi2": compared.chi2,
        "bins": compared.bins,
        "chi2_per_bin": compared.chi2 / compared.bins if compared.bins else None,
        "chi2_per_bin_beyond_tolerance": compared.chi2_beyond / compared.bins if compared.bins else None,
        "verdict": compared.verdict,
    }
    if reference is not None and compared.bins:
        tolerance = reference.tolerance
        entry["reference"] = {
            "value": _plain(reference.value),
            "error": _plain(reference.error),
            "tolerance": _plain(tolerance) if isinstance(tolerance, np.ndarray) else tolerance,
            "relative": reference.relative,
            "side": reference.side,
            "source": reference.source,
        }
    return entry


def _plain(values: Floats) -> list[float | None]:
    """Return numbers for JSON with six digits; None for NaN."""
    return [float(f"{value:.6g}") if np.isfinite(value) else None for value in values]


def numbers(values: Sequence[float | None]) -> Floats:
    """Return numbers of a JSON document as an array; NaN for null."""
    return np.array([np.nan if value is None else value for value in values], np.float64)
