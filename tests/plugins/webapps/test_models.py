"""The model zoo without scripts."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html import unescape

import httpx
import pytest
from docs.web_pictures import reconstruction
from huggingface_hub import HfApi
from tests.hub import token_on
from tests.plugins.webapps.boards import give_truth
from tests.plugins.webapps.test_front import stats

from collidium.client import Client
from collidium.testing.server import ServerProcess
from collidium_plugins.webapps.models import PAGE

#: A server of its own.
WEB_ENVIRONMENT: dict[str, str] = {}

HOSTILE = "</h2><script>alert(1)</script>"


@pytest.fixture(scope="module")
def zoo(web: ServerProcess) -> Iterator[httpx.Client]:
    """Pages of a platform whose hub has a page of models and two more, one of them on a leaderboard."""
    give_truth(web, "tracking")
    token = token_on(web.data_dir / "hub", "zora")
    hub = HfApi(f"{web.base_url}/hub", token)
    for number in range(PAGE):
        share(hub, f"zora/filler-{number}", ["fill"])
    share(hub, "zora/helix", ["collidium-task:tracking", "gnn"], description="Follows helices.")
    share(hub, "zora/odd", [HOSTILE], description=HOSTILE, library_name=HOSTILE)
    with Client(web.base_url, token) as client:
        client.submit("tracking", reconstruction(0.9), model_repo="zora/helix")
        client.submit("tracking", reconstruction(0.5), model_repo="zora/unlisted")
    with httpx.Client(base_url=web.base_url, trust_env=False, timeout=60) as visitor:
        yield visitor


def share(hub: HfApi, repo: str, tags: list[str], **card: str) -> None:
    hub.create_repo(repo)
    readme = f"---\n{json.dumps({'tags': ['collidium', *tags], **card})}\n---\n# A model\n"
    hub.upload_file(repo_id=repo, path_in_repo="README.md", path_or_fileobj=readme.encode())


def named(page: str) -> list[str]:
    return re.findall(r'<h2 class="card-title"><a href="/models/([^"]+)">', page)


def test_models_are_paginated_the_latest_first(zoo: httpx.Client) -> None:
    first = zoo.get("/models").text
    assert named(first)[:2] == ["zora/odd", "zora/helix"]
    assert len(named(first)) == PAGE
    following = re.search(r'rel="next" href="([^"]+)"', first)
    assert following is not None
    second = zoo.get(unescape(following[1])).text
    assert named(second) == ["zora/filler-1", "zora/filler-0"]
    assert 'rel="next"' not in second
    assert '<a class="button" href="/models">First page</a>' in second


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"search": "HEL"}, ["zora/helix"]),
        ({"search": " helix "}, ["zora/helix"]),
        ({"tag": "gnn"}, ["zora/helix"]),
        ({"task": "tracking"}, ["zora/helix"]),
        ({"task": "jets"}, []),
    ],
)
def test_the_form_works_without_scripts(zoo: httpx.Client, query: dict[str, str], found: list[str]) -> None:
    answer = zoo.get("/models", params=query)
    assert answer.status_code == 200
    assert named(answer.text) == found
    assert ("No model matches" in answer.text) == (not found)
    for name, value in query.items():
        if name == "task":
            assert f'<option value="{value}" selected>' in answer.text
        else:
            assert f'value="{value.strip()}"' in answer.text


def test_a_model_has_its_places_and_its_page_on_the_hub(zoo: httpx.Client) -> None:
    page = zoo.get("/models/zora/helix").text
    assert "Follows helices." in page
    assert f'href="{str(zoo.base_url).rstrip("/")}/hub/zora/helix"' in page
    assert '<td class="num" data-label="Rank">1</td>' in page
    assert ">verified</span>" in page
    assert 'href="/leaderboard/tracking?model=zora/helix"' in page
    board = zoo.get("/leaderboard/tracking?model=zora/helix").text
    assert 'data-label="Rank"><span>1</span></td>' in board
    assert 'data-label="Rank">2</td>' not in board
    (submission,) = re.findall(r'href="/leaderboard/submissions/([^"]+)"', page)
    assert zoo.get(f"/v1/submissions/{submission}").json()["model_repo"] == "zora/helix"


def test_an_unlisted_model_shows_its_submissions(zoo: httpx.Client) -> None:
    page = zoo.get("/models/zora/unlisted").text
    assert "not among those that are shared" in page
    assert "not its participant's best" in page
    assert '<td class="num" data-label="Rank">2</td>' not in page
    assert ">missing</span>" in page


@pytest.mark.parametrize(
    "path", ["/models/zora/nothing", "/models/zora", "/models/a/b/c", "/models/a%20b/c%0a"]
)
def test_unknown_model_is_reported_on_a_page(zoo: httpx.Client, path: str) -> None:
    answer = zoo.get(path, headers={"Accept": "text/html"})
    assert answer.status_code in {404, 422}
    assert '<main id="main"' in answer.text


@pytest.mark.parametrize("query", [{"search": "x" * 201}, {"task": "../x"}, {"cursor": "made-up"}])
def test_invalid_queries_are_reported(zoo: httpx.Client, query: dict[str, str]) -> None:
    answer = zoo.get("/models", params=query)
    assert answer.status_code == 422
    assert '<main id="main"' in answer.text


def test_the_front_page_counts_models_and_names_who_leads(zoo: httpx.Client) -> None:
    page = zoo.get("/").text
    assert stats(page)["shared models"] == str(PAGE + 2)
    assert stats(page)["leaderboards with entries"] == "1"
    assert "<bdi>zora</bdi>" in page


def test_commands_of_the_page_list_a_model(zoo: httpx.Client, web: ServerProcess) -> None:
    page = zoo.get("/models/list-yours").text
    found = re.search(r'aria-label="List a model from Python"><code>(.*?)</code>', page, re.S)
    assert found is not None
    script = unescape(found[1]).replace("your-name/my-model", "yuri/first")
    token = token_on(web.data_dir / "hub", "yuri")
    subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "HF_TOKEN": token, "HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_TELEMETRY": "1"},
        check=True,
        capture_output=True,
        timeout=120,
    )
    listed = zoo.get("/models", params={"search": "yuri/first", "task": "tracking"}).text
    assert named(listed) == ["yuri/first"]
    assert "A graph network that classifies pairs of hits." in listed
