"""The table of names there and here, and conversions of what differs in more than names."""

from __future__ import annotations

from typing import Any, Final

#: Fields and metrics, here -> there. Others have the same name.
NAMES: Final = {
    "hub_username": "hf_username",
    "output_hub_repo": "output_hf_repo",
    "eval_events": "eval_event_range",
    "requests": "n_requests",
    "trackml_weighted_efficiency": "trackml_eff",
    "duplicate_rate": "dup_rate",
    "light_rejection_70": "light_rej_70",
    "c_rejection_70": "c_rej_70",
    "signal_efficiency_fpr1": "sig_eff_1fpr",
    "events_per_second": "events_per_sec",
    "events_per_second_local": "events_per_sec_local",
    "events_per_second_streaming": "events_per_sec_streaming",
}

#: The metrics of a task there, by their names here, where they are not all of ours.
METRICS: Final = {
    "tracking": ("trackml_weighted_efficiency", "fake_rate", "duplicate_rate", "physics_eff_pt1"),
    "tracking_latency": ("wallclock_s", "events_per_second"),
    "anomaly": ("auroc", "signal_efficiency_fpr1"),
}

#: Maximum of each number in a query. What is above it is not rejected there.
MAXIMA: Final = {"limit": 1000, "days": 3660}

#: Values of ``state`` in queries there -> here. Responses need none: the client knows all of ours.
STATES: Final = {"submitted": "queued"}


def name_there(name: str) -> str:
    """The name of a field or metric there."""
    return NAMES.get(name, name)


def query(name: str, value: str) -> str:
    """The value of a query parameter as it is here."""
    if name in MAXIMA and value.isascii() and value.isdecimal():
        return str(min(int(value[:18]), MAXIMA[name]))
    return STATES.get(value, value) if name == "state" else value


def renamed(answer: Any) -> Any:
    """A response with the names of all fields as there."""
    if isinstance(answer, dict):
        return {name_there(name): renamed(value) for name, value in answer.items()}
    if isinstance(answer, list):
        return [renamed(value) for value in answer]
    return answer


def request_record(request: dict[str, Any]) -> dict[str, Any]:
    """A simulation request, as it is ordered, looked up and listed."""
    return {
        **renamed(request),
        name_there("output_hub_repo"): _repo_id(request["output_hub_repo"]),
        "id": request["request_id"],
        "estimated_completion_seconds": request["estimated_completion_seconds"] or 0,
        "actual_node_hours": request["node_hours"] if request["finished_at"] else None,
        "error_message": request["reason"] if request["state"] == "failed" else None,
    }


def task(card: dict[str, Any]) -> dict[str, Any]:
    """A task's card with its metrics there, the primary one first unless ``METRICS`` says otherwise."""
    metrics = {metric["name"]: metric["higher_is_better"] for metric in card["metrics"]}
    primary_first = sorted(metrics, key=lambda name: name != card["primary_metric"])
    shown = [name for name in METRICS.get(card["name"], primary_first) if name in metrics]
    return {
        **{field: card[field] for field in ("name", "title", "description", "dataset", "inputs")},
        "metrics": [name_there(name) for name in shown],
        "higher_is_better": {name_there(name): metrics[name] for name in shown},
        name_there("eval_events"): [card["eval_events"]["start"], card["eval_events"]["stop"]],
    }


def place(ranked: dict[str, Any]) -> dict[str, Any]:
    """A row of a leaderboard; without a rank, one of those that stand apart from it."""
    return {
        "rank": None,
        **renamed(ranked),
        "id": ranked["submission_id"],
        "is_baseline": ranked["baseline"],
    }


def usage(report: dict[str, Any]) -> list[dict[str, Any]]:
    """The month's usage, which there is the list of accounts alone."""
    users: list[dict[str, Any]] = renamed(report["users"])
    return users


def channel(report: dict[str, Any]) -> dict[str, Any]:
    """The month's requests of a channel."""
    return {"channel": report["channel"], "n": report["requests"], "node_hours": report["node_hours"]}


def day(report: dict[str, Any]) -> dict[str, Any]:
    """The requests of a day."""
    return {"day": report["date"], "n_requests": report["requests"], "node_hours": report["node_hours"]}


def failures(report: dict[str, Any]) -> dict[str, Any]:
    """How the month's requests ended; there, the rate is a fraction."""
    rate = round(report["failure_rate"] / 100, 4)
    return {"total": report["finished"], "failed": report["failed"], "failure_rate": rate}


def _repo_id(address: str | None) -> str | None:
    """NAMESPACE/NAME, as a hub's clients take it, of a dataset repository's address."""
    return None if address is None else "/".join(address.rsplit("/", 2)[-2:])
