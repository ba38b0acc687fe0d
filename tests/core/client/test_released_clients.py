"""Clients of earlier releases: what they sent is answered, with all that their own server had answered."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from tests.core.client.releases.record import FILES, PEOPLE
from tests.core.servers import benchmark_server, write_oracle
from tests.waiting import eventually

RECORDED: Final = sorted((Path(__file__).parent / "releases").glob("*.jsonl"))
#: Names that each server chooses, and their beginnings.
_CHOSEN: Final = re.compile(r"\b[0-9a-f]{12,32}\b|collidium_invitation_[\w-]+")


class Replay:
    """Sends recorded requests to a server, with its own ids and tokens in place of the recorded ones."""

    def __init__(self, http: httpx.Client, tokens: Mapping[str, str], files: Mapping[str, bytes]) -> None:
        self._http = http
        self._tokens = tokens
        self._files = files
        self._chosen: dict[str, str] = {}

    def problems(self, exchange: Mapping[str, Any]) -> list[str]:
        """What the old client misses in the response to a recorded request."""
        response = self._send(exchange)
        kind = response.headers.get("content-type", "").partition(";")[0]
        if (response.status_code, kind) != (exchange["status"], exchange["type"]):
            return [f"{response.status_code} {kind} is not {exchange['status']} {exchange['type']}"]
        if "answer" not in exchange:
            return []
        answer = response.json()
        self._learn(exchange["answer"], answer)
        return list(_missing(exchange["answer"], answer))

    def has_ended(self, challenge: str) -> bool:
        """Whether the end of a closed challenge, which runs in the background, is done."""
        return bool(self._http.get(f"/v1/challenges/{challenge}").json()["results_at"])

    def _send(self, exchange: Mapping[str, Any]) -> httpx.Response:
        headers = dict(exchange["headers"])
        if exchange["by"] == "operator":
            headers["X-Admin-Token"] = self._tokens["operator"]
        elif exchange["by"]:
            headers["Authorization"] = f"Bearer {self._tokens[exchange['by']]}"
        content: bytes | None = None
        if "file" in exchange:
            content = self._files[exchange["file"]]
        elif "body" in exchange:
            content = self._in_this_server(json.dumps(exchange["body"])).encode()
        target = self._in_this_server(exchange["target"])
        return self._http.request(exchange["method"], target, headers=headers, content=content)

    def _in_this_server(self, text: str) -> str:
        def chosen(found: re.Match[str]) -> str:
            sent = found[0]
            names = (new[: len(sent)] for old, new in self._chosen.items() if old.startswith(sent))
            return next(names, sent)

        return _CHOSEN.sub(chosen, text)

    def _learn(self, old: Any, new: Any) -> None:
        if isinstance(old, dict) and isinstance(new, dict):
            for name in old.keys() & new.keys():
                self._learn(old[name], new[name])
        elif isinstance(old, list) and isinstance(new, list):
            for one, other in zip(old, new, strict=False):
                self._learn(one, other)
        elif isinstance(old, str) and isinstance(new, str) and _CHOSEN.fullmatch(old):
            self._chosen.setdefault(old, new)


def _missing(old: Any, new: Any, place: str = "") -> Iterator[str]:
    """What of an old answer a new one lacks, or has with another type."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name, value in old.items():
            if name in new:
                yield from _missing(value, new[name], f"{place}/{name}")
            else:
                yield f"{place}/{name} is missing"
    elif isinstance(old, list) and isinstance(new, list):
        if len(new) < len(old):
            yield f"{place} has {len(new)} items instead of {len(old)}"
        for number, (one, other) in enumerate(zip(old, new, strict=False)):
            yield from _missing(one, other, f"{place}/{number}")
    elif old is not None and _kind(old) != _kind(new):
        yield f"{place} is {new!r} instead of {old!r}"


def _kind(value: Any) -> str:
    return "number" if type(value) in (int, float) else type(value).__name__


def _problems(replay: Replay, exchange: Mapping[str, Any]) -> list[str]:
    """As :meth:`Replay.problems`; an answer may need something that has not ended yet."""
    found = replay.problems(exchange)
    if exchange["target"].endswith("/close"):
        eventually(lambda: replay.has_ended(exchange["target"].split("/")[-2]), seconds=60)
    if found and exchange["method"] == "GET":
        with suppress(AssertionError):
            eventually(lambda: not replay.problems(exchange), seconds=10)
            return []
    return found


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda path: path.stem)
def test_a_released_client_is_answered_as_before(recorded: Path, tmp_path: Path) -> None:
    for name, seed in FILES.items():
        write_oracle(tmp_path / name, seed=seed)
    files = {name: (tmp_path / name).read_bytes() for name in FILES}
    with benchmark_server(tmp_path / "server") as server:
        tokens = {name: server.add_user(name) for name in PEOPLE} | {"operator": server.admin_token}
        with httpx.Client(base_url=server.base_url, timeout=60) as http:
            replay = Replay(http, tokens, files)
            exchanges = [json.loads(line) for line in recorded.read_text().splitlines()]
            problems = {
                f"{exchange['method']} {exchange['target']}": found
                for exchange in exchanges
                if (found := _problems(replay, exchange))
            }
    assert problems == {}
