"""Options that commands of challenges share, and how a challenge is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from collidium.cli.declaration import declared_options
from collidium.cli.options import DATE, ask
from collidium.cli.output import json_wanted, note, print_text, show_record
from collidium.presentation.challenge_settings import setting_rows
from collidium.presentation.challenges import closing_text
from collidium.presentation.tasks import data_lines
from collidium.records.challenge_settings import CHALLENGE_SETTINGS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collidium.client import Challenge, Client


preview_option = click.option("--preview", is_flag=True, help="Only show what would change.")
settings_options = declared_options(CHALLENGE_SETTINGS, "given")
changes_options = declared_options(CHALLENGE_SETTINGS, "given", is_change=True)
closes_option = click.option("--closes", "closes_at", type=DATE, help="When it closes; never: by command.")


def announce_split(server: Client, name: str, percent: int | None, *, yes: bool, **new: Any) -> None:
    """Say which tasks and challenges a public part closes, and ask on a terminal; raises click.Abort."""
    if percent is None:
        return
    if text := closing_text(server.admin_preview_split(name, percent, **new)):
        note(text)
        ask("Close them to submissions?", yes=yes)


def show_challenge(found: Challenge) -> None:
    """Print a challenge, with its data, announcements and rules."""
    rows: dict[str, object] = {
        "challenge": found.name,
        "task": found.task,
        "state": found.shown_state,
        **setting_rows(found),
        "final results": found.results_at,
        **({"results wait for": found.results_wait_for} if found.results_wait_for else {}),
        **({"accepts submissions": f"no: {found.reason}"} if found.reason else {}),
    }
    show_record(found, rows)
    if not json_wanted():
        for text in _texts(found):
            print_text(text)


def _texts(found: Challenge) -> Iterator[str]:
    """Yield how to get the data, the announcements and the rules of a challenge."""
    if found.card:
        for about, command in data_lines(found.card):
            yield about
            yield command
    for number, one in enumerate(found.announcements, start=1):
        edited = f", edited {one.edited_at:%Y-%m-%d %H:%M}" if one.edited_at else ""
        yield f"{number}. {one.at:%Y-%m-%d %H:%M}{edited}: {one.text}"
    yield from found.rules.splitlines()
