"""Pages of datasets and models: contents, code snippets, and sanitised cards."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path

import httpx
import pytest
from huggingface_hub import HfApi
from tests.core.datasets.events import CONFIG, tables_of, write

from collidium.testing.server import ServerProcess

CARD = """---
license: cc-by-4.0
tags: [collidium]
---
# Events of Olga

<script>alert(1)</script> ![picture](http://elsewhere.test/x.png)
[bad](javascript:alert(1)) [file](data/x.parquet) [html](data:text/html,x)

| a | b |
|---|---|
| <img src=x onerror=alert(1)> | 2 |
"""


#: A server of its own, whose list of datasets was not asked for before: it is kept for a while.
WEB_ENVIRONMENT: dict[str, str] = {}


@pytest.fixture(scope="module")
def pages(
    web: ServerProcess, token: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[httpx.Client]:
    """The pages of a server whose hub has a dataset and a model with that card."""
    hub = HfApi(f"{web.base_url}/hub", token("olga"))
    directory = tmp_path_factory.mktemp("events")
    write(directory, tables_of(range(3), hits=20))
    (directory / "README.md").write_text(CARD)
    for repo, kind in (("olga/events", "dataset"), ("olga/net", "model")):
        hub.create_repo(repo, repo_type=kind)
        hub.upload_folder(repo_id=repo, repo_type=kind, folder_path=directory)
    with httpx.Client(base_url=web.base_url, trust_env=False, timeout=60) as client:
        yield client


def test_datasets_are_listed_with_their_contents(pages: httpx.Client) -> None:
    page = pages.get("/datasets").text
    assert f'href="/datasets/olga/events/{CONFIG}"' in page
    assert "Built-in sample" in page
    assert "CC-BY-4.0" in page


def test_a_dataset_shows_columns_and_ways_to_load_it(pages: httpx.Client) -> None:
    page = pages.get(f"/datasets/olga/events/{CONFIG}").text
    for word in ("cc-by-4.0", "DuckDB", "pandas", "collidium datasets download olga/events", "How to cite"):
        assert word in page
    assert re.search(r'<code>x</code>.*?data-label="Unit">mm<', page, re.DOTALL)
    assert 'aria-label="Histogram of x"' in page
    assert f"/events?repo=olga%2Fevents&amp;config={CONFIG}&amp;event=2" in page
    url = re.search(r"SELECT \* FROM &#39;([^&]+)&#39;", page)
    assert url
    assert httpx.get(url[1], trust_env=False).content[:4] == b"PAR1"
    assert pages.get("/datasets/olga/events/none").status_code == 404
    assert pages.get("/datasets/olga/nothing/x").status_code == 404


def snippets(page: str) -> list[str]:
    """The code that a page shows."""
    return [unescape(text) for text in re.findall(r"<pre[^>]*><code>(.*?)</code></pre>", page, re.DOTALL)]


def test_shown_code_runs_where_it_is_pasted(
    pages: httpx.Client, isolated_environment: dict[str, str], tmp_path: Path
) -> None:
    """In a fresh process that knows no server: the code names the one that it came from."""
    addresses = re.findall(r'href="(/datasets/[^"?#]+)"', pages.get("/datasets").text)
    shown = [code for address in set(addresses) for code in snippets(pages.get(address).text)]
    programs = [text for text in shown if text.startswith(("from collidium", "import pandas"))]
    commands = [text for text in shown if text.startswith("collidium ")]
    assert len(programs) > len(commands) == 1
    ways = [*(["python", "-c", program] for program in programs), *(["sh", "-c", line] for line in commands)]
    for command in ways:
        done = subprocess.run(command, env=isolated_environment, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, (command, done.stderr)


@pytest.mark.parametrize("path", [f"/datasets/olga/events/{CONFIG}", "/models/olga/net"])
def test_a_card_is_rendered_without_active_content(pages: httpx.Client, path: str) -> None:
    page = pages.get(path).text
    card = page.partition('class="prose card-text">')[2].partition("</section>")[0]
    assert "<h3>Events of Olga</h3>" in card
    assert "license:" not in card
    assert "<td>2</td>" in card
    assert not re.search(r"<(script|img|style|iframe)", card)
    hrefs = re.findall(r'href="([^"]+)"', card)
    assert len(hrefs) == 2
    assert all(href.startswith(("http://127.0.0.1", "http://elsewhere.test/")) for href in hrefs)


def test_a_model_shows_files_and_how_to_use_it(pages: httpx.Client) -> None:
    page = pages.get("/models/olga/net").text
    assert "snapshot_download(&#34;olga/net&#34;" in page
    link = re.search(r'href="([^"]+/resolve/[^"]+/README\.md)"', page)
    assert link
    assert httpx.get(link[1], trust_env=False).text == CARD
