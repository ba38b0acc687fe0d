"""Shell completion of names: of tasks, presets and repositories."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from threading import Thread
from typing import Final

import click
from click.shell_completion import CompletionItem

#: How long a shell may wait for names from a server or a hub.
_COMPLETION_SECONDS: Final = 5.0
#: What a shell takes as one word: names come from a server.
_PLAIN: Final = re.compile(r"[\w./@:+-]+", re.ASCII)
Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def completing(find: Callable[[], Iterable[str]], seconds: float | None = None) -> Completer:
    """Complete names that ``find`` returns; none after an error or that time."""

    def complete(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        found: list[str] = []

        def look() -> None:
            with suppress(Exception):  # while a shell completes a word, an error has no reader
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
