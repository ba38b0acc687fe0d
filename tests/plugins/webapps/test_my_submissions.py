"""The page of an account's submissions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.core.api.conftest import import_truth
from tests.core.servers import write_oracle

from collidium.client import Client
from collidium.testing.server import ServerProcess

from .visiting import Visitor

MINE = "/leaderboard/mine"
#: More than a page has.
SENT = 27


WEB_ENVIRONMENT = {"PLATFORM_SUBMISSIONS_PER_DAY": "100"}


@pytest.fixture(scope="module")
def submitted(
    web: ServerProcess, token: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory
) -> list[str]:
    """Equally good submissions, the first of them first."""
    import_truth(web)
    path = tmp_path_factory.mktemp("oracles") / "oracle.parquet"
    sent = []
    with Client(web.base_url, token("submits-often")) as client:
        for seed in range(SENT):
            write_oracle(path, seed=seed)
            sent.append(client.submit("tracking", path))
    return [receipt.submission_id for receipt in sent]


@pytest.fixture
def anna(web: ServerProcess, token: Callable[[str], str]) -> Iterator[Visitor]:
    with Visitor(web.base_url) as visitor:
        visitor.sign_in(token("submits-often"))
        yield visitor


def test_submissions_are_paginated_with_their_ranks(anna: Visitor, submitted: list[str]) -> None:
    first = anna.get(MINE).text
    shown = [submission for submission in submitted if submission in first]
    assert shown == submitted[-25:]
    assert first.index(submitted[-1]) < first.index(submitted[-2])
    assert 'class="num">1</td>' not in first, "of an account, its best submission alone has a rank"
    assert "trackml_weighted_efficiency" in first
    assert "fake_rate" not in first
    address = first.partition('rel="next" href="')[2].partition('"')[0].replace("&amp;", "&")
    second = anna.get(address).text
    assert [submission for submission in submitted if submission in second] == submitted[:2]
    assert 'class="num">1</td>' in second
    other = submitted[-1]
    for address in (MINE, f"/leaderboard/submissions/{other}"):
        shown = anna.get(address).text
        assert "not your best" in shown or "not the best of its participant" in shown
        assert "of the leaderboard</a>" not in shown, (
            "a rank is that of the leaderboard, which has an account's best alone"
        )
    assert "First page" in second


def test_one_task_alone_is_shown_with_all_its_scores(anna: Visitor, submitted: list[str]) -> None:
    page = anna.get(f"{MINE}?task=tracking").text
    assert submitted[-1] in page
    assert "fake_rate" in page
    nothing = anna.get(f"{MINE}?task=jets").text
    assert "No submissions yet" in nothing
    assert "/leaderboard/jets/submit" in nothing


def test_a_self_reported_score_says_where_it_is_from(
    web: ServerProcess, token: Callable[[str], str], tmp_path: Path
) -> None:
    import_truth(web, "tracking_latency")
    path = tmp_path / "timed.parquet"
    oracle = write_oracle(path)
    pq.write_table(oracle.append_column("seconds", pa.array([0.25] * oracle.num_rows)), path)
    with Client(web.base_url, token("reports")) as client:
        sent = client.submit("tracking_latency", path)
    with Visitor(web.base_url) as visitor:
        visitor.sign_in(token("reports"))
        page = visitor.get(MINE, params={"task": "tracking_latency"}).text
    scores = page.partition(sent.submission_id)[2].partition("</ul>")[0].split("<li>")[1:]
    origins = {re.sub("<[^>]*>", " ", score).split()[0]: ">self-reported<" in score for score in scores}
    assert origins["events_per_second"]
    assert not origins["trackml_weighted_efficiency"]


def test_invalid_queries_are_reported(anna: Visitor, web: ServerProcess) -> None:
    for query in ("task=nothing", "task=%3Cb%3E", "cursor=x", "task=" + "a" * 65):
        answer = anna.get(f"{MINE}?{query}")
        assert answer.status_code in {404, 422}
        assert "<h1>" in answer.text
        assert "<b>" not in answer.text
    with Visitor(web.base_url) as anonymous:
        assert anonymous.get(MINE).status_code == 401
