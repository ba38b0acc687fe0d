"""Two platforms whose truth differs in held-back events alone answer participants alike.

Not covered: how long answers take (a tally of a held-back event may be larger or smaller), and the truth's
version, a hash of all of it, which is given the same name here. Of the plots of leaderboards only the tables
of their numbers are compared: times of submissions move their points.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from tests.plugins.webapps.visiting import Visitor
from tests.waiting import eventually

from collidium import database
from collidium.challenges.models import Challenge
from collidium.contracts.tables import flatten
from collidium.outbox.models import OutboxEvent
from collidium.scoring.truth.parts import ScoredTruth
from collidium.testing.databases import Databases
from collidium.testing.server import ServerProcess, run_command
from collidium.testing.synthetic import SyntheticEvents
from collidium.truth.models import DrawSeed, TruthVersion

from .conftest import SUBMIT, ok, operating, parquet, prepared, signed_in

#: It compares responses of servers whose truth differs.
pytestmark = pytest.mark.one_database

NAME = "spring-2027"
#: As many as it takes for scores in bins, of the public part, too.
EVENTS, HITS = 40, 1500
PUBLIC = 60

#: What a participant can read, below /v1 and below the challenge.
PATHS = [
    *("challenges", "benchmark/tasks", "benchmark/tracking", f"benchmark/{NAME}", "datasets", "models"),
    *("limits", f"leaderboard/{NAME}", "leaderboard/tracking", "me", "me/transactions", "me/submissions"),
    *("me/submissions?limit=1", "me/webhook", "me/notifications"),
]
PATHS_OF_CHALLENGE = [
    *("leaderboard", "leaderboard?all=true", "leaderboard?limit=1", "leaderboard?hub_username=bob"),
    *("results", "results?all=true", "results?format=csv", "results?format=csv&all=true"),
    *("results?status=withdrawn", "quota", "team", "team/submissions"),
]

#: Ids and times; the same id is the same on one platform, and keeps its place in the order of appearance.
_ID = re.compile(r"(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])")
#: What a page or a form has for itself.
_OWN = re.compile(r'csrf(_token" value)?="[^"]*"|cursor=[\w=-]+')
_PLOT = re.compile(r"<svg.*?</svg>", re.DOTALL)
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|\+00:00)?")


def import_truth(server: ServerProcess, source: Path) -> str:
    """Import the truth of all events; returns its version."""
    done = server.run("truth", "import", "tracking", "--from", str(source), "--events", f"0:{EVENTS}")
    assert done.returncode == 0, done.stderr
    (directory,) = (server.data_dir / "truth" / "tracking").iterdir()
    return directory.name


def shuffle_truth(source: Path, events: frozenset[int]) -> None:
    """Give the hits of these events each another's particle."""
    path = source / "tracker_hits.parquet"
    table = pq.read_table(path)
    rows = table.column("particle_id").to_pylist()
    for row in events:
        rows[row] = np.random.default_rng(row).permutation(np.asarray(rows[row])).tolist()
    index = table.column_names.index("particle_id")
    field = table.schema.field(index)
    pq.write_table(table.set_column(index, field, pa.array(rows, field.type)), path)


def rename_truth(server: ServerProcess, version: str, name: str) -> None:
    """Call a version of truth by another name: it is random which events a version holds back."""
    directory = server.data_dir / "truth" / "tracking"
    (directory / version).rename(directory / name)
    manifest = directory / name / "manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"version": name}))

    async def rename() -> None:
        async with database.connected(server.environment["PLATFORM_DATABASE_URL"]):
            truth = await TruthVersion.get(version=version)
            await truth.update_from_dict(
                {"version": name, "whole": name, "manifest": truth.manifest | {"version": name}}
            ).save()
            await Challenge.filter(truth_version=version).update(truth_version=name)

    asyncio.run(rename())


class Recorder:
    """What participants of one platform are answered, without ids and times."""

    def __init__(self, server: ServerProcess) -> None:
        self.server = server
        self.answers: list[tuple[str, str]] = []
        self._ids: dict[str, str] = {}

    def keep(self, asked: str, answer: str) -> None:
        for word, neutral in ((self.server.base_url, "URL"), (self.server.hub_url, "HUB")):
            answer = answer.replace(word, neutral)
        answer = _ID.sub(lambda found: self._ids.setdefault(found[0], f"id{len(self._ids)}"), answer)
        self.answers.append((self._ids.get(asked, _ID.sub("id", asked)), _TIME.sub("time", answer)))

    def ask(self, client: httpx.Client, method: str, path: str, **options: Any) -> Any:
        answer = client.request(method, path, **options)
        if answer.headers["Content-Type"].endswith("json"):
            kept = answer.json()
        else:
            page = _OWN.sub("", answer.text)
            # Plots of scores in bins have no times.
            kept = page if path.startswith("/leaderboard/submissions/") else _PLOT.sub("", page)
        self.keep(f"{method} {path}", f"{answer.status_code} {json.dumps(neutral(kept))}")
        return kept


def neutral(answer: Any) -> Any:
    """Without what names a request, and cursors, which hold ids and times."""
    if isinstance(answer, Mapping):
        return {
            name: neutral(value)
            for name, value in answer.items()
            if name not in {"request_id", "next_cursor"}
        }
    return [neutral(one) for one in answer] if isinstance(answer, list) else answer


@pytest.fixture
def platforms(_databases: Databases, tmp_path: Path) -> Iterator[list[ServerProcess]]:
    """Two servers, the truth of the second shuffled where it is held back."""
    source, name = tmp_path / "events", ""
    source.mkdir()
    for table, made in SyntheticEvents(hits=HITS).tables(range(EVENTS)).items():
        pq.write_table(made, source / f"{table}.parquet")
    environment = {"PLATFORM_SUBMISSIONS_PER_DAY": "3", "PLATFORM_WEBHOOK_PRIVATE_ADDRESSES": "true"}

    async def share_seeds(server: ServerProcess) -> None:
        """Errors come from secret draws, which differ between platforms."""
        async with database.connected(server.environment["PLATFORM_DATABASE_URL"]):
            part = ScoredTruth(name).part("public", PUBLIC)
            for version in (name, part, part.final):
                await DrawSeed.create(task="tracking", truth_version=version, seed="shared")

    def prepare(server: ServerProcess) -> None:
        nonlocal name
        version = import_truth(server, source)
        if name:
            assert version != name, "the truth differs"
            rename_truth(server, version, name)
        name = name or version
        asyncio.run(share_seeds(server))

    with ExitStack() as servers:
        found = []
        for number in range(2):
            directory = tmp_path / f"prepared-{number}"
            directory.mkdir()
            opened = servers.enter_context(prepared(_databases, directory, prepare))
            found.append(servers.enter_context(opened(tmp_path / f"server-{number}", environment)))
            shuffle_truth(source, ScoredTruth(name).part("final", PUBLIC).groups(EVENTS))
        yield found


@pytest.fixture(scope="module")
def predictions() -> list[bytes]:
    """Good for some events, bad for others; each one of its own."""
    flat = flatten(SyntheticEvents(hits=HITS).tables(range(EVENTS))["tracker_hits"], ["particle_id"])
    flat = flat.append_column("hit_id", pa.array(np.tile(np.arange(HITS), EVENTS)))
    events, truth = flat["event_id"].to_numpy(), flat["particle_id"].to_numpy().astype(np.int64)
    made = []
    for number in range(6):
        kept = np.random.default_rng(number).random(len(flat)) < np.where(
            events % 2, 0.3 + number / 10, 0.9 - number / 10
        )
        table = flat.append_column("track_id", pa.array(np.where(kept, truth, -1)))
        made.append(parquet(table.select(["event_id", "hit_id", "track_id"])))
    return made


def play(server: ServerProcess, files: list[bytes]) -> list[tuple[str, str]]:
    """What two participants can get while a challenge is open, in an order that is always the same."""
    recorder, where = Recorder(server), f"/v1/challenges/{NAME}"
    body = {"name": NAME, "task": "tracking", "public_percent": PUBLIC, "rewarded": True}
    with operating(server) as admin:
        ok(admin.post("/admin/challenges", json=body), 201)
    with signed_in(server, "alice") as alice, signed_in(server, "bob") as bob:
        alice.put("/v1/me/webhook", json={"url": "https://127.0.0.1:9/hook"}).raise_for_status()
        senders = [alice, bob, alice, bob, alice, bob, alice]
        for client, number in zip(senders, [0, 1, 2, 3, 4, 0, 0], strict=True):
            recorder.ask(client, "POST", f"{where}/check", content=files[number])
            sent = recorder.ask(client, "POST", f"{where}/submit", content=files[number])
            recorder.ask(client, "GET", f"/v1/submissions/{sent['submission_id']}")
            recorder.ask(client, "GET", f"{where}/leaderboard")
        recorder.ask(alice, "POST", f"{where}/submit", content=files[5])  # one too many
        bad = pq.read_table(pa.BufferReader(files[0]))
        worse = bad.set_column(1, "hit_id", pc.add(bad["hit_id"], 7_000_000))
        for table in (worse, pa.concat_tables([bad, bad]), bad.drop_columns("track_id")):
            recorder.ask(alice, "POST", f"{where}/check", content=parquet(table))
        recorder.ask(alice, "POST", SUBMIT, content=files[5])
        mine = alice.get("/v1/me/submissions").json()
        recorder.ask(alice, "PATCH", f"/v1/submissions/{mine[0]['submission_id']}", json={"final": True})
        recorder.ask(bob, "PATCH", f"/v1/submissions/{mine[0]['submission_id']}", json={"final": True})
        recorder.ask(alice, "POST", f"/v1/submissions/{mine[1]['submission_id']}/withdraw")
        metrics = [metric["name"] for metric in recorder.ask(alice, "GET", where)["card"]["metrics"]]
        eventually(lambda: alice.get(f"{where}/leaderboard").json()[0]["rank_low"] is not None)
        paths = [f"/v1/{path}" for path in PATHS]
        paths += [f"{where}/{path}" for path in PATHS_OF_CHALLENGE]
        paths += [f"{where}/leaderboard/history?metric={metric}" for metric in metrics]
        for path in paths:
            recorder.ask(alice, "GET", path)
        assert recorder.ask(alice, "GET", f"{where}/leaderboard?limit=1&all=true")
        token = alice.headers["Authorization"].partition(" ")[2]
    with Visitor(server.base_url) as visitor:
        for is_signed_in in (False, True):
            if is_signed_in:
                visitor.sign_in(token)
                assert visitor.is_signed_in
            for path in pages_of(mine):
                recorder.ask(visitor, "GET", path)
    environment = server.environment | {"PLATFORM_BACKEND": server.base_url, "HF_TOKEN": token}
    for command in (
        ("challenge", "export", NAME, "--all"),
        ("challenge", "show", NAME),
        ("leaderboard", NAME),
    ):
        done = run_command(command, environment, server.directory)
        recorder.keep(" ".join(command), f"{done.returncode} {done.stdout} {done.stderr}")
    for sent_body in asyncio.run(sent_events(server)):
        recorder.keep("webhook", sent_body)
    return recorder.answers


def pages_of(mine: list[dict[str, Any]]) -> list[str]:
    """The pages that show something of the challenge, or of an account's submissions."""
    board, compared = f"/leaderboard/{NAME}", f"?compare={mine[1]['submission_id']}"
    queries = ("", "?pareto=1", "?user=alice", "/results", "/submit", "/team")
    submissions = [f"/leaderboard/submissions/{sent['submission_id']}" for sent in mine]
    lists = ("/", "/leaderboard", "/leaderboard/tracking", "/leaderboard/mine", "/models", "/datasets")
    return [*lists, *(board + query for query in queries), *submissions, submissions[0] + compared]


async def sent_events(server: ServerProcess) -> list[str]:
    """What webhooks are sent, whether or not they take it."""
    async with database.connected(server.environment["PLATFORM_DATABASE_URL"]):
        bodies = [event.body for event in await OutboxEvent.all().order_by("created_at")]
    assert bodies
    return bodies


def test_nothing_depends_on_what_is_held_back(
    platforms: list[ServerProcess], predictions: list[bytes]
) -> None:
    one, other = [play(server, predictions) for server in platforms]
    assert len(one) == len(other)
    for answer, shuffled in zip(one, other, strict=True):
        assert answer == shuffled
    plots = [page for asked, page in one if asked.startswith("GET /leaderboard/submissions/")]
    assert plots
    assert all('<svg class=\\"plot' in page for page in plots)
    shown = [answer for asked, answer in one if asked.startswith("GET /v1/submissions/")]
    assert shown
    assert all('"curves": [{' in answer for answer in shown)
    statuses = {answer.partition(" ")[0] for _, answer in one}
    assert statuses >= {"200", "403", "409", "422", "429"}
    # Else nothing was shown: the end differs.
    ends = [final_scores(server) for server in platforms]
    assert ends[0] != ends[1]


def final_scores(server: ServerProcess) -> list[dict[str, float]]:
    path = f"/v1/challenges/{NAME}"
    with operating(server) as client:
        client.post(f"/admin/challenges/{NAME}/close")
        eventually(lambda: client.get(path).json()["results_at"] is not None)
        return [place["scores"] for place in client.get(f"{path}/leaderboard").json()]
