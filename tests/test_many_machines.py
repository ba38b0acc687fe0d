"""The whole loop on several machines: each part is killed in turn, and servers are restarted in turn."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count, groupby, pairwise, product
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any, Final

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.core.api.conftest import EVENTS, parquet
from tests.core.api.test_resumable_uploads import append, begin
from tests.core.servers import FIRST, STOP, write_oracle
from tests.counts import LONG
from tests.machines import PARTS, Machines, started
from tests.needs import Needs
from tests.plugins.webapps.visiting import Visitor
from tests.ports import free_ports
from tests.proxies import caddy

import collidium

ROUNDS: Final = 10 if LONG else 1
FILES: Final = 50
CONFIG: Final = "ttbar_pu0"
#: Starting all machines is part of the first test's time.
pytestmark = pytest.mark.timeout(7200 if LONG else 600)
METRIC: Final = "trackml_weighted_efficiency"
LIFE: Final = ["queued", "running", "completed"]
#: What a part that is away may cost a request, which is sent again then.
AWAY: Final = frozenset({502, 503, 504})


@pytest.fixture(scope="module")
def machines(needs: Needs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    """All of them, with the truth of the demo's events, imported by a machine that serves nothing."""
    needs("nginx")
    with started(tmp_path_factory.mktemp("machines")) as machines:
        machines.desk.environment["HF_TOKEN"] = machines.hub.token("host")
        run(machines, "datasets", "publish", str(EVENTS), "--repo", "benchmark", "--config", CONFIG)
        events = ("--config", CONFIG, "--events", f"{FIRST}:{STOP}")
        run(machines, "truth", "import", "tracking", "--from", "host/benchmark", *events)
        yield machines


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """Predictions, each with more hits that are no track's."""
    oracle = write_oracle(tmp_path_factory.mktemp("oracle") / "predictions.parquet")
    oracle = oracle.sort_by([("event_id", "ascending"), ("hit_id", "ascending")])
    noise = np.random.default_rng(1).random(oracle.num_rows)
    tracks = oracle["track_id"].to_numpy()
    spoilt = (np.where(noise < n / FILES, -1, tracks) for n in range(FILES))
    return [parquet(oracle.set_column(2, "track_id", pa.array(ids))) for ids in spoilt]


def run(machines: Machines, *arguments: str) -> str:
    done = machines.desk.run(*arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def insist(send: Callable[[], httpx.Response]) -> httpx.Response:
    """Send until it is accepted; until then a part is away, and nothing else fails."""
    deadline, pause = monotonic() + 180, Event()
    while True:
        answer = send()
        if answer.is_success:
            return answer
        assert answer.status_code in AWAY, answer.text
        assert answer.status_code != 503 or int(answer.headers["Retry-After"]) > 0
        assert monotonic() < deadline, answer.text
        pause.wait(0.2)


def placed(client: httpx.Client, seed: int) -> httpx.Response:
    body = {"channel": "single_muon", "events": 1, "pileup": 0, "seed": seed}
    return client.post("/v1/simulate", json=body, headers={"Idempotency-Key": f"order-{seed}"})


def order(client: httpx.Client, seed: int) -> str:
    return str(insist(lambda: placed(client, seed)).json()["request_id"])


def watch(client: httpx.Client, request_id: str) -> list[dict[str, Any]]:
    """The states of a request as its stream shows them, called again whenever it breaks, until the end."""
    deadline, seen, pause = monotonic() + 180, list[dict[str, Any]](), Event()
    while not seen or seen[-1]["finished_at"] is None:
        assert monotonic() < deadline, seen
        try:
            with client.stream("GET", f"/v1/requests/{request_id}/progress") as answer:
                assert answer.status_code in AWAY | {200}, answer.status_code
                for line in answer.iter_lines():
                    if answer.is_success and line.startswith("data: "):
                        seen.append(json.loads(line.removeprefix("data: ")))
        except httpx.TransportError:
            pass
        pause.wait(0.1)
    return seen


def assert_whole(seen: Sequence[dict[str, Any]]) -> None:
    """No event of a request was missed: each shows all of its life until then."""
    moments = [[moment["state"] for moment in one["timeline"]] for one in seen]
    assert all(after[: len(before)] == before for before, after in pairwise(moments))
    assert [state for state, _ in groupby(moments[-1])] in (LIFE, [LIFE[0], LIFE[-1]])
    assert moments[-1].count(LIFE[-1]) == 1


class Traffic:
    """Calls that go on while the context lasts, and their statuses."""

    def __init__(self) -> None:
        self.statuses: Counter[tuple[str, int | str]] = Counter()
        self._stop = Event()
        self._pool = ThreadPoolExecutor()

    def __enter__(self) -> Traffic:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._pool.shutdown()

    def repeat(self, name: str, pause: float, send: Callable[[int], httpx.Response]) -> None:
        self._pool.submit(self._repeat, name, pause, send)

    def _repeat(self, name: str, pause: float, send: Callable[[int], httpx.Response]) -> None:
        for number in count():
            if self._stop.wait(pause):
                return
            try:
                self.statuses[name, send(number).status_code] += 1
            except httpx.TransportError as error:
                self.statuses[name, repr(error)] += 1


def test_servers_restart_one_after_the_other_unnoticed(machines: Machines, files: list[bytes]) -> None:
    """No request fails, though nothing but a refused connection is sent to the other server."""
    submit = "/v1/benchmark/tracking/submit"
    with machines.client("rolling") as client, ThreadPoolExecutor() as pool, Traffic() as traffic:
        traffic.repeat("read", 0.03, lambda _: client.get("/v1/leaderboard/tracking"))
        traffic.repeat("order", 1, lambda number: placed(client, 1000 + number % 5))
        traffic.repeat("submit", 0.1, lambda number: client.post(submit, content=files[number % 10]))
        for number in range(2 * ROUNDS):
            seen = pool.submit(watch, client, order(client, 100_000 + number))
            assert machines.servers[number % 2].stop() == 0
            machines.start(f"server {number % 2}")
            assert_whole(seen.result())
    assert {name for name, _ in traffic.statuses} == {"read", "order", "submit"}
    assert {status for _, status in traffic.statuses} <= {200, 202}, traffic.statuses


def test_an_upload_in_parts_stays_with_one_server(
    machines: Machines, files: list[bytes], tmp_path: Path
) -> None:
    """Through either proxy; elsewhere nothing of it is there."""
    (port,) = free_ports(1)
    servers = [int(server.base_url.rpartition(":")[2]) for server in machines.servers]
    with caddy(tmp_path / "caddy", port, servers) as other, machines.client("parts") as client:
        for url, file in product((machines.url, other), files[:3]):
            client.base_url = url
            where = begin(client, file)
            for offset in range(4):
                answer = append(client, where, file[offset : offset + 1], offset, complete=False)
                assert answer.status_code == 204, answer.text
            assert append(client, where, file[4:], 4).status_code == 200


def test_kills_of_every_part_lose_and_repeat_nothing(machines: Machines, files: list[bytes]) -> None:
    """At each kill orders, submissions, a stream and a session are under way."""
    kills = [part for _ in range(ROUNDS) for part in PARTS]
    receipts, orders = dict[int, dict[str, Any]](), list[str]()
    with (
        machines.client("lea") as lea,
        Visitor(machines.url) as browser,
        ThreadPoolExecutor() as pool,
    ):
        browser.sign_in(machines.hub.token("lea"))
        for server in machines.servers:
            assert browser.get(f"{server.base_url}/web/balance").status_code == 200
        for number, (part, batch) in enumerate(
            zip(kills, np.array_split(range(FILES), len(kills)), strict=True)
        ):
            before = pool.submit(order, lea, 2 * number + 10)
            sent = {int(n): pool.submit(submit, lea, files[n]) for n in batch}
            seen = pool.submit(watch, lea, before.result())
            machines.kill(part)
            after = pool.submit(order, lea, 2 * number + 11)
            machines.start(part)
            receipts |= {n: answer.result().json() for n, answer in sent.items()}
            orders += [before.result(), after.result()]
            assert_whole(seen.result())
            assert insist(lambda: browser.get("/web/balance")).json().keys() == {"credits"}
        for request_id in orders:
            assert_whole(watch(lea, request_id))
        assert_scored_as_at_home(lea, files, receipts)
        assert_ended_once(machines, lea, orders)
    audit = json.loads(run(machines, "ledger", "audit", "--json"))
    assert audit == {"mismatches": [], "totals": []}


def submit(client: httpx.Client, file: bytes) -> httpx.Response:
    return insist(lambda: client.post("/v1/benchmark/tracking/submit", content=file))


def assert_scored_as_at_home(
    client: httpx.Client, files: Sequence[bytes], receipts: dict[int, dict[str, Any]]
) -> None:
    kept = client.get("/v1/me/submissions", params={"limit": 100}).json()
    assert len(kept) == len(files) == len(receipts)
    scores = {one["submission_id"]: one["scores"] for one in kept}
    for number, file in enumerate(files):
        found = pq.read_table(pa.BufferReader(file))
        expected = collidium.score(
            "tracking", found, truth_from=EVENTS, config=CONFIG, events=f"{FIRST}:{STOP}"
        )
        assert scores[receipts[number]["submission_id"]] == expected.scores
    (place,) = (one for one in client.get("/v1/leaderboard/tracking").json() if one["hub_username"] == "lea")
    assert place["scores"][METRIC] == max(one[METRIC] for one in scores.values()) == 1


def assert_ended_once(machines: Machines, client: httpx.Client, orders: Sequence[str]) -> None:
    """One charge and one repository with one commit for each request, and none for no request."""
    made = client.get("/v1/requests", params={"limit": 500}).json()
    assert sorted(one["request_id"] for one in made) == sorted(orders)
    entries = client.get("/v1/me/transactions", params={"limit": 500}).json()
    charged = Counter(one["reference"] for one in entries if one["reason"] == "simulation_charge")
    assert charged == Counter(orders)
    hub = machines.hub.api("lea")
    repos = {f"{machines.hub.url}/datasets/{info.id}": info.id for info in hub.list_datasets(author="lea")}
    assert repos.keys() == {one["output_hub_repo"] for one in made}
    for one in made:
        commits = hub.list_repo_commits(repos[one["output_hub_repo"]], repo_type="dataset")
        assert [commit.title for commit in commits].count(f"Simulation {one['request_id']}") == 1
