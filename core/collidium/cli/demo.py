"""``collidium demo``: the whole platform on this machine."""

from __future__ import annotations

import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Literal, NoReturn

import click

from collidium.cli.options import DIRECTORY, json_option
from collidium.cli.output import note, print_table, short_reference, show_value

if TYPE_CHECKING:
    from collidium.demo.loop import LoopOutcome


@click.command()
@click.option(
    "--data-dir",
    type=DIRECTORY,
    help="Empty directory for all files, which is kept; default: a temporary one.",
)
@click.option("--keep", is_flag=True, help="Keep the server running until Ctrl-C, with all six tasks open.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default="any free one",
    help="Port of the server.",
)
@click.option(
    "--runner",
    type=click.Choice(["auto", "local", "mock"]),
    default="auto",
    show_default=True,
    help="Runner of simulation requests; auto: this machine if the extra sim is installed, else the mock "
    "runner, which makes no events.",
)
@json_option
def demo(data_dir: Path | None, keep: bool, port: int, runner: Literal["auto", "local", "mock"]) -> None:
    """Show the whole platform on five real events, isolated from other data on this machine.

    Starts a server with a local hub, publishes the events as a dataset, imports truth for two of them,
    reconstructs tracks from the hits, submits the results, orders more events and waits for them, and shows
    scores, requests, credits and leaderboard.

    \b
    collidium demo
    collidium demo --keep --port 8000
    """
    from collidium.demo.loop import run_demo

    signal.signal(signal.SIGTERM, _leave)
    with _directory(data_dir) as directory, run_demo(directory, port, runner, _report) as outcome:
        show_value(outcome, _print_outcome)
        if keep:
            _stay(outcome, directory)


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    """Exit normally on SIGTERM, so that the server is stopped too."""
    sys.exit(128 + number)


@contextmanager
def _directory(chosen: Path | None) -> Iterator[Path]:
    if chosen is None:
        with tempfile.TemporaryDirectory(prefix="collidium-demo-") as directory:
            yield Path(directory)
        return
    chosen.mkdir(parents=True, exist_ok=True)
    if any(chosen.iterdir()):
        raise click.BadParameter(f"{chosen} is not empty", param_hint="--data-dir")
    yield chosen.absolute()


def _report(step: str) -> None:
    note(f"* {step}")


def _print_outcome(outcome: LoopOutcome) -> None:
    from collidium.cli.printing import print_places

    metrics = [metric.name for metric in outcome.card.metrics]
    print_table(
        ("baseline", "submitted by", *metrics, "credits earned"),
        (
            (s.baseline, s.hub_username, *(s.receipt.scores[m] for m in metrics), s.receipt.credits_earned)
            for s in outcome.submissions
        ),
        title="Scores",
    )
    print_table(
        ("request", "ordered by", "preset", "state", "credits charged", "refunded"),
        (
            (
                short_reference(order.request.request_id),
                order.by,
                order.preset,
                f"{order.request.state}{', made before' if order.request.cached else ''}",
                order.request.credits_charged,
                order.request.credits_refunded,
            )
            for order in outcome.orders
        ),
        title="Simulation requests",
    )
    print_table(
        ("account", "credits", "reason", "for", "balance"),
        (
            (account, entry.delta, entry.reason, short_reference(entry.reference or "-"), entry.balance_after)
            for account, entries in outcome.ledger.items()
            for entry in reversed(entries)
        ),
        title="Ledger",
    )
    print_places(outcome.card, outcome.leaderboard, title="Leaderboard")


def _stay(outcome: LoopOutcome, directory: Path) -> None:
    from collidium.demo.loop import open_other_tasks

    # Before the first note, which says that Ctrl-C ends this.
    with suppress(KeyboardInterrupt):
        note(f"Collidium is at {outcome.url} until you press Ctrl-C. In another shell, for example:")
        note(f"  export PLATFORM_BACKEND={outcome.url} HF_TOKEN=$(cat {outcome.tokens['alice']})")
        note(f"  export HF_ENDPOINT={outcome.hub_url}")
        note("  collidium me")
        note("  collidium requests")
        _report("Opening the other tasks on small sets of events, and submitting their baselines")
        open_other_tasks(directory, outcome.url)
        _report("All six leaderboards are live")
        signal.pause()
