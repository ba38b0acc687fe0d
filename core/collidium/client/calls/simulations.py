"""Calls about simulation requests."""

from __future__ import annotations

from collidium.client.answers import listed, single
from collidium.client.calls.call import Call, Credential, filtered, keyed, segment
from collidium.records import Estimate, OrderLimits, Page, Preset, SimulationRequest


def simulate(
    channel: str | None = None,
    events: int | None = None,
    pileup: int | None = None,
    *,
    seed: int | None = None,
    preset: str | None = None,
    private: bool = False,
    webhook_url: str | None = None,
    idempotency_key: str | None = None,
) -> Call[SimulationRequest]:
    """Order events, by channel, events and pileup or a preset; ``cached``: it cost nothing.

    It is safe to be repeated under one ``idempotency_key``; without one the order gets a key of its own,
    under which a lost connection is tried again.
    """
    asked = {
        "channel": channel,
        "events": events,
        "pileup": pileup,
        "preset": preset,
        "seed": seed,
        "private": private or None,
        "webhook_url": webhook_url,
    }
    body = {name: value for name, value in asked.items() if value is not None}
    return Call("POST", "/v1/simulate", single(SimulationRequest), json=body, headers=keyed(idempotency_key))


def request(request_id: str) -> Call[SimulationRequest]:
    """A simulation request with its timeline."""
    return Call("GET", f"/v1/requests/{segment(request_id)}", single(SimulationRequest))


def requests(
    *, state: str | None = None, limit: int | None = None, cursor: str | None = None
) -> Call[Page[SimulationRequest]]:
    """A page of the account's simulation requests, newest first."""
    query = filtered(limit, cursor, state=state)
    return Call("GET", "/v1/requests", listed(SimulationRequest), query=query)


def cancel(request_id: str) -> Call[SimulationRequest]:
    """Have a request cancelled, which may take a while; Conflict when there is nothing left to stop."""
    return Call("POST", f"/v1/requests/{segment(request_id)}/cancel", single(SimulationRequest))


def estimate(channel: str, events: int, pileup: int) -> Call[Estimate]:
    """What an order would cost."""
    query = {"channel": channel, "events": str(events), "pileup": str(pileup)}
    return Call("GET", "/v1/estimate", single(Estimate), Credential.NONE, query=query)


def limits() -> Call[OrderLimits]:
    """What may be ordered: channels, and how many events, how much pileup and which seeds."""
    return Call("GET", "/v1/limits", single(OrderLimits), Credential.NONE)


def presets() -> Call[Page[Preset]]:
    """Orders that have a name."""
    return Call("GET", "/v1/presets", listed(Preset), Credential.NONE)
