"""Records what the client of a release sends, and what its server answered.

Run it once per release, in a checkout and an environment of that release::

    python record.py > 0.4.0.jsonl

Each line is a request with its response, in the order in which they were sent. The predictions that clients
upload are not kept: ``test_released_clients`` writes them as this script did, by :data:`FILES`.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import httpx
from tests.core.servers import benchmark_server, write_oracle

from collidium.client import Client
from collidium.errors import CollidiumError

#: Files of predictions by name, with the seed of their order.
FILES: Final = {"first": 1, "second": 2, "course": 3, "team": 4, "checked": 5}
PEOPLE: Final = ("alice", "bob")
#: Headers that a server acts on.
_HEADERS: Final = frozenset({"accept", "content-type", "idempotency-key", "if-match", "range"})


class Recorder(httpx.HTTPTransport):
    """Passes requests on, and keeps them with their responses."""

    def __init__(self, credentials: Mapping[str, str], files: Mapping[bytes, str]) -> None:
        super().__init__()
        self._credentials = credentials
        self._files = files
        self.exchanges: list[dict[str, Any]] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        body = request.read()
        response = super().handle_request(request)
        answer = response.read()
        kind = response.headers.get("content-type", "").partition(";")[0]
        kept: dict[str, Any] = {
            "by": self._by(request),
            "method": request.method,
            "target": request.url.raw_path.decode(),
            "headers": {name: value for name, value in request.headers.items() if name in _HEADERS},
            "status": response.status_code,
            "type": kind,
        }
        if body in self._files:
            kept["file"] = self._files[body]
        elif body:
            kept["body"] = json.loads(body)
        if kind.endswith("json"):
            kept["answer"] = _without_tokens(json.loads(answer))
        waits = self.exchanges and _asked(self.exchanges[-1]) == _asked(kept)
        if waits and request.method == "GET":
            self.exchanges.pop()
        self.exchanges.append(kept)
        return httpx.Response(response.status_code, headers=response.headers, content=answer, request=request)

    def _by(self, request: httpx.Request) -> str:
        bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
        sent = bearer, request.headers.get("x-admin-token", "")
        return next((self._credentials[one] for one in sent if one in self._credentials), "")


def _without_tokens(answer: Any) -> Any:
    return answer | {"token": ""} if isinstance(answer, dict) and answer.get("token") else answer


def _asked(kept: Mapping[str, Any]) -> tuple[Any, ...]:
    return kept["by"], kept["method"], kept["target"], kept.get("body")


def journey(alice: Client, bob: Client, operator: Client, files: Mapping[str, Path]) -> None:
    """Call each method of the client at least once."""
    operator.health()
    operator.ready()
    operator.tasks()
    operator.task("tracking")
    operator.limits()
    operator.presets()
    alice.me()
    alice.quota("tracking")
    _order(alice, operator)
    _compete(alice, bob, operator, files)
    _challenge(alice, bob, operator, files)
    alice.datasets(limit=2)
    alice.models(search="oracle", limit=2)
    alice.event("ttbar_pu0", 3, tables=["tracker_hits"])
    _rejected(lambda: alice.card("models", "alice/none"))
    _rejected(lambda: alice.set_webhook("http://127.0.0.1/hook"))
    _rejected(alice.webhook)
    alice.webhook_deliveries(limit=2)
    alice.notifications()
    alice.set_notifications(kinds={})
    alice.transactions(limit=2)
    _operate(bob, operator)


def _order(alice: Client, operator: Client) -> None:
    alice.estimate("ttbar", 10, 0)
    ordered = alice.simulate("ttbar", 10, 0, seed=42)
    alice.wait(ordered.request_id, timeout=60)
    alice.simulate("ttbar", 10, 0, seed=42)  # the same again: deduplicated
    alice.request(ordered.request_id)
    alice.requests(limit=2)
    alice.output(ordered.request_id)
    operator.admin_requests(limit=2, user="alice")
    operator.admin_request(ordered.request_id)
    operator.admin_output(ordered.request_id)
    operator.admin_freeze(note="maintenance")
    _rejected(lambda: alice.simulate("ttbar", 10, 0, seed=43))
    operator.admin_freeze(False)
    _rejected(lambda: alice.cancel(ordered.request_id))
    _rejected(lambda: alice.simulate("ttbar", 10**9, 0))
    _rejected(lambda: alice.request("0" * 32))


def _compete(alice: Client, bob: Client, operator: Client, files: Mapping[str, Path]) -> None:
    alice.check("tracking", files["checked"])
    first = alice.submit("tracking", files["first"], "alice/oracle")
    second = bob.submit("tracking", files["second"])
    alice.submit("tracking", files["first"])  # the same again: deduplicated
    alice.submission(first.submission_id)
    alice.submissions(task="tracking", limit=2)
    alice.set_links(first.submission_id, code_url="https://code.example/", model_repo=None)
    alice.leaderboard("tracking")
    alice.leaderboard("tracking", limit=1, user="alice")
    alice.leaderboard_history("tracking")
    alice.results("tracking")
    alice.self_reported("tracking")
    alice.compare(first.submission_id, second.submission_id)
    _rejected(lambda: bob.withdraw(first.submission_id))
    _rejected(lambda: alice.reproduce(first.submission_id))
    bob.withdraw(second.submission_id)
    operator.admin_submissions(task="tracking", limit=2)
    _rejected(lambda: operator.admin_verify(first.submission_id))
    operator.admin_roster("tracking")
    operator.admin_challenge_submissions("tracking", limit=2)
    operator.admin_rescore("tracking")
    operator.wait_for_rescoring("tracking", timeout=60)
    _rejected(lambda: alice.submit_from_hub("tracking", "alice/none/predictions.parquet"))
    alice.evaluations()
    _rejected(lambda: alice.evaluation("0" * 32))


def _challenge(alice: Client, bob: Client, operator: Client, files: Mapping[str, Path]) -> None:
    name = "summer-course"
    closes = datetime(2047, 6, 30, 12, tzinfo=UTC)
    operator.admin_new_challenge(
        name, "tracking", title="A summer course", closes_at=closes, team_size=2, access="members"
    )
    operator.admin_edit_challenge(name, rules="# Rules", announcement="It begins.")
    operator.admin_add_members(name, ["alice", "bob"])
    operator.admin_members(name)
    alice.challenges()
    alice.challenge(name)
    alice.quota(name)
    alice.new_team(name, "A team")
    invitation = alice.invite_to_team(name)
    bob.team(name, invitation.code)
    bob.join(name, invitation.code)
    alice.team(name)
    alice.teams(name)
    alice.remove_from_team(name, "bob")
    operator.admin_dissolve_team(name, "A team")
    alice.new_team(name, "Another team")
    sent = alice.submit(name, files["team"])
    alice.team_submissions(name)
    alice.submissions(challenge=name)
    alice.leaderboard(name)
    operator.admin_preview_standing(name, sent.submission_id)
    operator.admin_disqualify(name, sent.submission_id, "a test")
    operator.admin_reinstate(name, sent.submission_id)
    operator.admin_invite(name)
    operator.admin_remove_member(name, "bob")
    operator.admin_close_challenge(name)
    alice.leaderboard(name)
    _rejected(lambda: operator.admin_dissolve_team(name, "Another team"))
    operator.admin_open_challenge(name, closes_at=closes + timedelta(days=1))
    _rejected(lambda: operator.admin_new_challenge("x", "tracking"))


def _operate(bob: Client, operator: Client) -> None:
    operator.admin_overview()
    operator.admin_tasks()
    operator.admin_usage(limit=2)
    operator.admin_channels()
    operator.admin_daily(days=2)
    operator.admin_failures()
    operator.admin_accounts(search="ali", limit=1)
    operator.admin_account("alice")
    operator.admin_transactions("alice", limit=2)
    operator.admin_grant("bob", Decimal(5), "a talk", idempotency_key="key-of-a-grant")
    operator.admin_grant("bob", Decimal(5), "a talk", idempotency_key="key-of-a-grant")
    operator.admin_ban("bob", note="a test")
    _rejected(bob.me)
    operator.admin_ban("bob", False)
    operator.admin_add_operator("carol", ["benchmarks"])
    operator.admin_operators()
    operator.admin_withdraw_operator("carol")
    now = datetime.now(UTC)
    operator.admin_refunds(now - timedelta(days=1), now)
    operator.admin_audit(limit=2)
    operator.admin_evaluations(limit=2)


def _rejected(call: Callable[[], object]) -> None:
    try:
        call()
    except CollidiumError:
        return
    raise AssertionError("it was accepted")


@contextmanager
def _clients(directory: Path) -> Iterator[tuple[Recorder, Callable[[str], Client], dict[str, Path]]]:
    files = {name: directory / f"{name}.parquet" for name in FILES}
    for name, path in files.items():
        write_oracle(path, seed=FILES[name])
    with benchmark_server(directory / "server") as server:
        tokens = {server.add_user(name): name for name in PEOPLE} | {server.admin_token: "operator"}
        recorder = Recorder(tokens, {path.read_bytes(): name for name, path in files.items()})
        opened = []

        def client(name: str) -> Client:
            token = next(token for token, of in tokens.items() if of == name)
            made = Client(server.base_url, *(("", token) if name == "operator" else (token, "")))
            made._transport._given = httpx.Client(transport=recorder)  # this release has no public way
            opened.append(made)
            return made

        try:
            yield recorder, client, files
        finally:
            for one in opened:
                one.close()


def main() -> None:
    with tempfile.TemporaryDirectory() as directory, _clients(Path(directory)) as (recorder, client, files):
        journey(client("alice"), client("bob"), client("operator"), files)
    for exchange in recorder.exchanges:
        sys.stdout.write(json.dumps(exchange, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
