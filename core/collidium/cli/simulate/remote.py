"""``collidium simulate --remote``: order simulated events from the server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collidium.cli.context import client
from collidium.cli.output import cell, note, print_json
from collidium.cli.progress import status_line
from collidium.cli.requests import show, state_text

if TYPE_CHECKING:
    from collidium.client import Client, SimulationRequest


def order(
    preset: str | None,
    channel: str | None,
    events: int | None,
    pileup: int | None,
    seed: int | None,
    private: bool,
    webhook_url: str | None,
    wait: bool,
    idempotency_key: str | None,
    as_json: bool,
) -> int:
    """Order events, wait for them if ``wait``, and return the exit code.

    The same order again returns the cached events and costs nothing.
    """
    with client() as server:
        request = server.simulate(
            channel,
            events,
            pileup,
            seed=seed,
            preset=preset,
            private=private,
            webhook_url=webhook_url,
            idempotency_key=idempotency_key,
        )
        if wait and not request.has_ended:
            paid = cell(request.credits_charged)
            note(f"Request {request.request_id} is {request.state}; {paid} credits were charged.")
            request = _waited(server, request)
    if as_json:
        print_json(request)
    else:
        show(request)
        if request.cached:
            note("These events were made before; they cost nothing.")
        if not request.has_ended:
            note(f"`collidium status {request.request_id}` shows its progress.")
    return 1 if wait and request.state != "completed" else 0


def _waited(server: Client, request: SimulationRequest) -> SimulationRequest:
    with status_line() as update:

        def on_change(seen: SimulationRequest) -> None:
            reason = f": {seen.reason}" if seen.reason else ""
            update(f"{state_text(seen)}{reason}")

        try:
            return server.wait(request.request_id, on_change=on_change)
        except KeyboardInterrupt:
            note(f"The request continues: collidium status {request.request_id}")
            raise
