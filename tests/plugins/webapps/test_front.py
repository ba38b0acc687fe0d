"""The front page: small, cached, and shown while the hub does not respond."""

from __future__ import annotations

import asyncio
import re

import click
import httpx
import pytest

from collidium.cli.root import collidium
from collidium.errors import Unavailable
from collidium.testing.server import ServerProcess
from collidium_plugins.webapps import front as front_page

#: Bytes of the page with all that it loads.
LARGEST = 150_000


#: A hub that is away.
WEB_ENVIRONMENT = {"PLATFORM_HUB_URL": "http://127.0.0.1:1/hub"}


@pytest.fixture(scope="module")
def front(web: ServerProcess) -> str:
    answer = httpx.get(web.base_url, trust_env=False)
    assert answer.status_code == 200
    return answer.text


def stats(page: str) -> dict[str, str]:
    """The numbers of a front page by what they count."""
    return {
        what: re.sub(r"<[^>]*>", "", number)
        for what, number in re.findall(r'<li class="stat">([^<]+)<strong>(.*?)</strong>', page)
    }


def test_a_missing_part_is_reported(front: str) -> None:
    assert stats(front)["benchmark tasks"] == "6"
    assert stats(front)["leaderboards with entries"] == "0"
    assert stats(front)["shared models"] == "—"
    assert "the hub http://127.0.0.1:1/hub cannot be reached" in front


def test_every_task_leads_to_its_leaderboard(web: ServerProcess, front: str) -> None:
    tasks = httpx.get(f"{web.base_url}/v1/benchmark/tasks", trust_env=False).json()
    for task in tasks:
        assert f'<a href="/leaderboard/{task["name"]}">{task["title"]}</a>' in front
    assert front.count("Takes no submissions: no truth yet") == len(tasks)


def test_ten_lines_are_ten_and_their_commands_exist(front: str) -> None:
    lines = re.findall(r'aria-label="Commands"><code>(.*?)</code>', front, re.DOTALL)[0].splitlines()
    commands = [line.split()[1] for line in lines if line.startswith("collidium ")]
    assert (len(lines), len(commands)) == (10, 7)
    assert all(collidium.get_command(click.Context(collidium), command) for command in commands)


def test_the_page_and_its_assets_are_small(web: ServerProcess, front: str) -> None:
    named = set(re.findall(r'(?:src|href)="(/web/static/[^"]+)"', front))
    assert any("event.svg" in path for path in named)
    sizes = []
    for path in named:
        answer = httpx.get(f"{web.base_url}{path}", headers={"Accept-Encoding": "identity"}, trust_env=False)
        assert answer.status_code == 200
        sizes.append(len(answer.content))
    assert len(front.encode()) + sum(sizes) < LARGEST


def test_the_page_of_models_says_that_the_hub_is_down(web: ServerProcess) -> None:
    answer = httpx.get(f"{web.base_url}/models", trust_env=False)
    assert answer.status_code == 503
    assert answer.headers["Retry-After"]
    assert "cannot be reached" in answer.text
    assert 'href="/models">Try again</a>' in answer.text


async def test_a_slow_part_leaves_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front_page, "PART_SECONDS", 0.01)
    assert isinstance(await front_page._or_error(asyncio.Event().wait()), Unavailable)


@pytest.mark.parametrize("path", ["/nothing", "/v1/nothing", "/leaderboard/a/b/c", "/web/nothing"])
def test_unknown_address_is_a_page_for_browsers_alone(web: ServerProcess, path: str) -> None:
    with httpx.Client(base_url=web.base_url, trust_env=False) as client:
        page = client.get(path, headers={"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"})
        answer = client.get(path)
    assert (page.status_code, answer.status_code) == (404, 404)
    assert "Page not found" in page.text
    assert 'href="/"' in page.text
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    assert answer.json()["status"] == 404
