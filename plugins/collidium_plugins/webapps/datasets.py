"""``/datasets``: the list of datasets, and a page of each with its columns and ways to load it; ``/events``.

The pages of events are the event display.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from cachetools import TTLCache
from markupsafe import Markup
from quart import Response, current_app, request

from collidium.client import DatasetEntry, RepoCard
from collidium.errors import CollidiumError, NotFound
from collidium.hub import cards
from collidium.runtime.shared_calls import SharedCalls
from collidium_plugins.webapps.context import Route, backend, hub_url
from collidium_plugins.webapps.errors import error_text
from collidium_plugins.webapps.rendering import render, see_other, with_query

#: Datasets per page, and events that are linked.
PAGE: Final = 50
EVENTS: Final = 5
#: Bins of a histogram, and the quantiles of its range.
BINS: Final = 24
_SHOWN: Final = (0.01, 0.99)

_EXTENSION: Final = "collidium.webapps.columns"
#: Number of datasets whose columns are cached. They are fixed for a revision, but withholding may change.
_KEPT, _KEPT_SECONDS = 200, 600.0

#: Datasets that can be chosen by name; others are shown by their URL.
_OFFERED: Final = 200


@dataclass(frozen=True, slots=True)
class ShownColumn:
    """A column of a table with the values of one event."""

    name: str
    kind: str
    unit: str
    #: Number of values, and their range if they are numbers.
    count: int
    low: float | None = None
    high: float | None = None
    #: Values per bin; empty for ids.
    bars: Sequence[int] = ()

    @property
    def outline(self) -> str:
        """The histogram as an SVG path, ``BINS`` wide and 10 high."""
        highest = max(self.bars, default=0) or 1
        return "".join(
            f"M{index}.5 10v{-10 * bar / highest:.2f}" for index, bar in enumerate(self.bars) if bar
        )


async def show() -> Response:
    """``GET /datasets``"""
    cursor = request.args.get("cursor") or None
    page = await backend().datasets(limit=PAGE, cursor=cursor)
    return await render(
        "datasets.html",
        datasets=page.items,
        warning=page.warning,
        parts=parts,
        address=address_of,
        first=cursor and "/datasets",
        next=page.next_cursor and with_query("/datasets", cursor=page.next_cursor),
    )


async def show_one(repo: str, config: str) -> Response:
    """``GET /datasets/<repo>/<config>``"""
    server = backend()
    entry = next((one for one in (await server.datasets(repo=repo, limit=100)) if one.config == config), None)
    if entry is None:
        raise NotFound(f"there is no public dataset {repo} with a config {config}")
    (card, text), (tables, trouble) = await asyncio.gather(_card(entry), _tables(entry))
    first = entry.first_event
    last = entry.last_event
    events = () if first is None or last is None else range(first, min(first + EVENTS, last + 1))
    return await render(
        "dataset.html",
        entry=entry,
        card=card,
        text=text,
        tables=tables,
        trouble=trouble,
        parts=parts(entry),
        bins=BINS,
        events=events,
        snippets=_snippets(entry, card),
    )


async def show_one_of_hub(namespace: str, name: str, config: str) -> Response:
    """``GET /datasets/<namespace>/<name>/<config>``"""
    return await show_one(f"{namespace}/{name}", config)


def address_of(entry: DatasetEntry) -> str:
    """The page of a dataset."""
    return f"/datasets/{entry.repo}/{entry.config}"


def parts(entry: DatasetEntry) -> tuple[str, str]:
    """Channel and pileup in the config's name; the pileup is empty if it has none."""
    channel, _, pileup = entry.config.rpartition("_pu")
    return (channel, pileup) if channel and pileup.isdecimal() else (entry.config, "")


async def _card(entry: DatasetEntry) -> tuple[RepoCard | None, Markup]:
    if entry.sample:
        return None, Markup()
    try:
        card = await backend().card("datasets", entry.repo)
    except CollidiumError as error:
        return None, Markup("<p>{}</p>").format(error_text(error))
    return card, await cards.rendered(card.text, card.url)


# -- columns ---------------------------------------------------------------------------------------------


async def _tables(entry: DatasetEntry) -> tuple[Mapping[str, Sequence[ShownColumn]], str]:
    """The columns of each table with their values in the first event, or an error message."""
    calls: SharedCalls[tuple[str, str, str], Mapping[str, Sequence[ShownColumn]]] = (
        current_app.extensions.setdefault(_EXTENSION, SharedCalls(TTLCache(_KEPT, _KEPT_SECONDS)))
    )
    try:
        return await calls.run((entry.repo, entry.config, entry.revision), lambda: _columns(entry)), ""
    except CollidiumError as error:
        return {}, error_text(error)


async def _columns(entry: DatasetEntry) -> Mapping[str, Sequence[ShownColumn]]:
    revision = None if entry.sample else entry.revision
    event = await backend().event(entry.config, entry.first_event or 0, repo=entry.repo, revision=revision)
    return await asyncio.to_thread(
        lambda: {
            name: [_column(table.schema.field(column), table[column]) for column in table.column_names]
            for name, table in event.tables().items()
        }
    )


def _column(field: pa.Field[Any], values: pa.ChunkedArray[Any]) -> ShownColumn:
    unit = (field.metadata or {}).get(b"unit", b"").decode()
    found = ShownColumn(field.name, str(field.type), unit, len(values))
    if field.name.endswith("_id") or not (
        pa.types.is_floating(field.type) or pa.types.is_integer(field.type)
    ):
        return found
    numbers = values.drop_null().to_numpy().astype(np.float64)
    numbers = numbers[np.isfinite(numbers)]
    if not len(numbers):
        return found
    low, high = float(numbers.min()), float(numbers.max())
    # Without outliers, which would leave all others in a single bin.
    begin, end = (float(edge) for edge in np.quantile(numbers, _SHOWN))
    bars = np.histogram(numbers, BINS, (begin, end) if end > begin else (begin - 0.5, begin + 0.5))[0]
    return ShownColumn(found.name, found.kind, unit, found.count, low, high, bars.tolist())


# -- code snippets --------------------------------------------------------------------------------------


def _snippets(entry: DatasetEntry, card: RepoCard | None) -> Sequence[tuple[str, str]]:
    """Ways to load a table, each with its name."""
    table, first = entry.tables[-1], entry.first_event or 0
    stop = first + 10 if entry.last_event is None else min(first + 10, entry.last_event + 1)
    if entry.sample:
        source, repo = "sample.CONFIGS[" + repr(entry.config) + "]", ""
        start = "from collidium import datasets\nfrom collidium.datasets import sample\n\n"
    else:
        source, repo, start = repr(entry.repo), entry.repo, "from collidium import datasets\n\n"
    events = f"{first}:{stop}"
    at = f', endpoint="{hub_url()}"' if repo else ""
    python = f'{start}{table} = datasets.load({source}, "{entry.config}", "{table}", "{events}"{at})'
    found = [("Python", python)]
    if not repo:
        return found
    command = (
        f"collidium datasets download {repo} --config {entry.config} --tables {table} --events {events} "
        f"--hub {hub_url()}"
    )
    found.append(("Command", command))
    path = next(
        (
            path
            for path in (card.files if card else ())
            if path.endswith(".parquet") and f"{entry.config}_{table}" in path
        ),
        None,
    )
    if path is not None:
        url = f"{hub_url()}/datasets/{repo}/resolve/{entry.revision}/{path}"
        found.append(("DuckDB", f"SELECT * FROM '{url}' LIMIT 10;"))  # noqa: S608 -- shown, not run
        found.append(("pandas", f'import pandas as pd\n\n{table} = pd.read_parquet("{url}")'))
    return found


ROUTES: Final[list[Route]] = [
    ("GET", "", show),
    ("GET", "/<repo>/<config>", show_one),
    ("GET", "/<namespace>/<name>/<config>", show_one_of_hub),
]


async def show_events() -> Response:
    """``GET /events?repo=&config=&event=``; without a config, the first event of the first dataset."""
    wanted = request.args.get("dataset", "")
    if wanted:  # from the form without scripts, which has one field for repository and config
        repo, _, config = wanted.rpartition("/")
        return see_other(with_query("/events", repo=repo, config=config, event=request.args.get("event")))
    offered, problem = await _datasets()
    repo, config = request.args.get("repo", ""), request.args.get("config", "")
    if not config and offered:
        repo, config = offered[0].repo, offered[0].config
    return await render(
        "events.html",
        offered=offered,
        problem=problem,
        repo=repo,
        config=config,
        chosen=next((each for each in offered if (each.repo, each.config) == (repo, config)), None),
        event=_number(request.args.get("event", "")),
    )


async def _datasets() -> tuple[list[DatasetEntry], str]:
    """The datasets to choose from, and a warning about the list, if any."""
    try:
        page = await backend().datasets(limit=_OFFERED)
        return list(page.items), page.warning
    except CollidiumError as error:
        return [], error_text(error)


def _number(text: str) -> int | None:
    """Parse an event id; None if it is invalid."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 11 else None


EVENT_ROUTES: Final[list[Route]] = [("GET", "", show_events)]
