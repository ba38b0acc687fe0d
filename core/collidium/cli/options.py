"""Options, arguments and parameter types that several commands share, with their shell completion."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from functools import partial
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
from click.shell_completion import CompletionItem

from collidium.cli.context import check_environment

if TYPE_CHECKING:
    from collidium.contracts.task import EventRange
    from collidium.hub.sources import HubDataset

#: How long shell completion waits for a server or a hub.
_COMPLETION_SECONDS: Final = 5.0
#: Names from a server are completed only if a shell needs no quotes for them.
_PLAIN: Final = re.compile(r"[\w./@:+-]+", re.ASCII)
Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]
Command = TypeVar("Command", bound=Callable[..., Any])
Converted = TypeVar("Converted")
DIRECTORY: Final = click.Path(file_okay=False, path_type=Path)
EXISTING_DIRECTORY: Final = click.Path(exists=True, file_okay=False, path_type=Path)
FILE: Final = click.Path(dir_okay=False, path_type=Path)
EXISTING_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)
#: The largest page that the server returns.
_MAX_PAGE: Final = 1000
_UNITS: Final = {"d": 86_400, "h": 3600, "m": 60, "s": 1}
_DURATION: Final = re.compile(r"(?:(\d{1,4})d)?(?:(\d{1,5})h)?(?:(\d{1,7})m)?(?:(\d{1,9})s?)?", re.IGNORECASE)


def completing(find: Callable[[], Iterable[str]], seconds: float | None = None) -> Completer:
    """Complete names that ``find`` returns; complete none if it fails or takes longer than ``seconds``."""

    def complete(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        found: list[str] = []

        def look() -> None:
            with suppress(Exception):  # completion has no place to show an error
                found.extend(find())

        thread = Thread(target=look, daemon=True)
        thread.start()
        thread.join(seconds)
        names = [name for name in list(found) if name.startswith(incomplete)]
        return [CompletionItem(name) for name in names if _PLAIN.fullmatch(name)]

    return complete


def _tasks() -> list[str]:
    from collidium.client import Client

    with Client() as server:
        return [task.name for task in server.tasks()]


def _installed_tasks() -> Iterable[str]:
    from collidium import plugins

    return plugins.load().tasks().things


def _presets() -> Iterable[str]:
    from collidium.order import PRESETS

    return PRESETS


def _repositories() -> list[str]:
    from collidium.datasets import list_repositories

    return [item["repo"] for item in list_repositories()]


complete_tasks = completing(_tasks, _COMPLETION_SECONDS)
complete_installed_tasks = completing(_installed_tasks)
complete_presets = completing(_presets)
complete_repositories = completing(_repositories, _COMPLETION_SECONDS)


def json_option(command: Command) -> Command:
    """Add ``--json``, for the functions ``show_...`` of `collidium.cli.output` and for errors."""

    def remember(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
        ctx.find_root().obj.as_json = value

    return click.option(
        "--json", is_flag=True, is_eager=True, expose_value=False, callback=remember, help="Print plain JSON."
    )(command)


def limit_option(items: str, default: int = 20) -> Callable[[Command], Command]:
    """Add ``--limit``."""
    return click.option(
        "--limit",
        type=click.IntRange(1, _MAX_PAGE),
        default=default,
        show_default=True,
        help=f"Maximum number of {items} shown.",
    )


def state_option(items: str, states: Iterable[str]) -> Callable[[Command], Command]:
    """Add ``--state``."""
    return click.option("--state", type=click.Choice(list(states)), help=f"Only {items} in this state.")


def preset_option(command: Command) -> Command:
    return click.option(
        "--preset",
        help="A named order; `collidium presets` lists them.",
        shell_complete=complete_presets,
    )(command)


key_option = click.option(
    "--idempotency-key",
    metavar="KEY",
    help="Repeat a command whose response was lost: the server acts once per key; default: a new key.",
)

yes_option = click.option("--yes", is_flag=True, help="Do not ask first.")


def ask(question: str, *, yes: bool) -> None:
    """Ask for confirmation on a terminal, unless ``yes``; raises click.Abort if the answer is no."""
    if not yes and sys.stdin.isatty():
        click.confirm(question, abort=True, err=True)


class ConvertedType(click.ParamType[Converted]):
    """A type whose values a function parses; the message of its ValueError is shown.

    Click's own support for functions discards the message.
    """

    def __init__(self, name: str, parse: Callable[[str], Converted]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Converted:
        try:
            return self._parse(str(value).strip())
        except ValueError as error:
            self.fail(str(error), param, ctx)


def _parse_credits(text: str) -> Decimal:
    try:
        amount = Decimal(text)
    except InvalidOperation:
        amount = Decimal("NaN")
    if not amount.is_finite():
        raise ValueError(f"{text!r} is not an amount of credits: write for example 2.5 or -2.5")
    return amount


def _parse_time(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a time: write for example 2026-11-21T09:00Z") from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _parse_duration(text: str) -> float:
    match = _DURATION.fullmatch(text)
    numbers = match.groups() if match else ()
    seconds = sum(int(number or 0) * unit for number, unit in zip(numbers, _UNITS.values(), strict=False))
    if not seconds:
        raise ValueError(f"{text!r} is not a duration: write for example 90s, 30m, 2h or 1h30m")
    return float(seconds)


def _parse_events(text: str) -> EventRange:
    from collidium.contracts.task import EventRange

    return EventRange.parse(text)


CREDITS: Final = ConvertedType("credits", _parse_credits)
#: A time, in UTC unless it has a zone.
TIME: Final = ConvertedType("time", _parse_time)
#: A duration in seconds.
DURATION: Final = ConvertedType("duration", _parse_duration)
#: A range of event ids, START:STOP.
EVENTS: Final = ConvertedType("events", _parse_events)


def _parse_date(text: str, none: str = "never") -> datetime | None:
    if text in {none, "never"}:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is not written like 2027-06-30T12:00+02:00") from None
    if moment.tzinfo is None:
        written = moment.isoformat(timespec="auto" if moment.second or moment.microsecond else "minutes")
        raise ValueError(f"{text!r} has no time zone: write {written}Z for UTC, or {written}+02:00")
    return moment


def date_type(none: str = "never") -> ConvertedType[datetime | None]:
    """Return the type of a date and time with a time zone; None for ``none`` and ``never``."""
    return ConvertedType("DATE", partial(_parse_date, none=none))


DATE: Final = date_type()

challenge_argument = click.argument("name", shell_complete=complete_tasks)


def uses_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add ``--uses`` and ``--until`` of an invitation."""
    until = click.option("--until", "expires_at", type=DATE, help="When it expires; default: in 14 days.")
    uses = click.option("--uses", type=click.IntRange(1, 10_000), default=1, help="How often it can be used.")
    return uses(until(command))


class SourceType(click.Path):
    """A directory, or a repository or its address; both are completed."""

    name = "source"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        directories = super().shell_complete(ctx, param, incomplete)
        return [*directories, *complete_repositories(ctx, param, incomplete)]


def source_argument(*, required: bool = True) -> Callable[[Command], Command]:
    return click.argument("source", type=SourceType(file_okay=False), required=required)


def hub_options(command: Command) -> Command:
    """Add ``--hub`` and ``--revision``."""
    hub = click.option("--hub", metavar="URL", help="Address of the hub, if not that of the environment.")
    revision = click.option("--revision", metavar="NAME", help="Branch, tag or commit; default: main.")
    return hub(revision(command))


def events_option(description: str) -> Callable[[Command], Command]:
    return click.option("--events", type=EVENTS, metavar="START:STOP", help=description)


config_option = click.option(
    "--config", metavar="NAME", help="Dataset config, for example ttbar_pu200; default: the only one."
)

cache_option = click.option(
    "--cache",
    type=DIRECTORY,
    help="Directory of downloads; default: collidium/datasets in XDG_CACHE_HOME or ~/.cache.",
)

truth_option = click.option(
    "--option",
    "options",
    multiple=True,
    metavar="NAME=VALUE",
    help="An option of the task for its truth, for example hits=uniform.",
)


def parse_options(options: Iterable[str]) -> dict[str, str]:
    """Parse the values of :data:`truth_option`."""
    return {name: value for name, _, value in (option.partition("=") for option in options)}


def locate_source(source: str, hub: str | None, revision: str | None) -> Path | HubDataset:
    """Return the directory or repository of a dataset. Raises InvalidInput and ConfigurationError."""
    from collidium.hub.sources import locate

    check_environment()
    return locate(source, endpoint=hub, revision=revision)
