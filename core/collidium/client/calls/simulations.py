"""Calls about simulation requests."""

from __future__ import annotations

from collidium.client.answers import listed, single
from collidium.client.calls.call import Call, Credential, filtered, keyed, segment
from collidium.records import Estimate, Knobs, Page, Preset, SimulationRequest


def simulate(
    channel: str | None,
    events: int | None,
    pileup: int | None,
    seed: int | None,
    preset: str | None,
    private: bool,
    webhook_url: str | None,
    idempotency_key: str | None,
) -> Call[SimulationRequest]:
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
    return Call("GET", f"/v1/requests/{segment(request_id)}", single(SimulationRequest))


def requests(state: str | None, limit: int | None, cursor: str | None) -> Call[Page[SimulationRequest]]:
    query = filtered(limit, cursor, state=state)
    return Call("GET", "/v1/requests", listed(SimulationRequest), query=query)


def cancel(request_id: str) -> Call[SimulationRequest]:
    return Call("POST", f"/v1/requests/{segment(request_id)}/cancel", single(SimulationRequest))


def estimate(channel: str, events: int, pileup: int) -> Call[Estimate]:
    query = {"channel": channel, "events": str(events), "pileup": str(pileup)}
    return Call("GET", "/v1/estimate", single(Estimate), Credential.NONE, query=query)


def knobs() -> Call[Knobs]:
    return Call("GET", "/v1/knobs", single(Knobs), Credential.NONE)


def presets() -> Call[Page[Preset]]:
    return Call("GET", "/v1/presets", listed(Preset), Credential.NONE)
