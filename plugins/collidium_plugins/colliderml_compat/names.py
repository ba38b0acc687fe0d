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
}

#: Values of ``state`` in queries there -> here. Responses need none: the client knows all of ours.
STATES: Final = {"submitted": "queued"}


def name_there(name: str) -> str:
    """The name of a field or metric there."""
    return NAMES.get(name, name)


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
        "actual_node_hours": request["node_hours"] if request["finished_at"] else None,
        "error_message": request["reason"] if request["state"] == "failed" else None,
    }


def task(card: dict[str, Any]) -> dict[str, Any]:
    """A task's card; there, the first metric is the primary one."""
    primary = card["primary_metric"]
    metrics = sorted(card["metrics"], key=lambda metric: bool(metric["name"] != primary))
    return {
        **{field: card[field] for field in ("name", "title", "description", "dataset", "inputs")},
        "metrics": [name_there(metric["name"]) for metric in metrics],
        "higher_is_better": {name_there(metric["name"]): metric["higher_is_better"] for metric in metrics},
        name_there("eval_events"): [card["eval_events"]["start"], card["eval_events"]["stop"]],
    }


def place(ranked: dict[str, Any]) -> dict[str, Any]:
    """A row of a leaderboard. Baselines are ordinary submissions here: none is marked."""
    return {**renamed(ranked), "id": ranked["submission_id"], "is_baseline": False}


def usage(report: dict[str, Any]) -> list[dict[str, Any]]:
    """The month's usage, which there is the list of accounts alone."""
    users: list[dict[str, Any]] = renamed(report["users"])
    return users


def _repo_id(address: str | None) -> str | None:
    """NAMESPACE/NAME, as a hub's clients take it, of a dataset repository's address."""
    return None if address is None else "/".join(address.rsplit("/", 2)[-2:])
