"""Code that pages and cards show runs where it is pasted: in a fresh process that knows no server.

The server is on a port of its own, so code that names none fails. All pages are visited; of pages of a kind,
such as submissions of models, the code of one is run, and of all in the long run.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape
from io import BytesIO
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.counts import LONG
from tests.sandboxes import allowance

from collidium.client import Client
from collidium.testing.processes import isolated_environment
from collidium.testing.server import ServerProcess, run_command

from .visiting import Visitor

#: The first installs the client that people have, and seeds the server.
pytestmark = pytest.mark.timeout(400)

#: Not the one that the front page prefers, and one that ranks files.
TASK = "jets"
#: What blocks show that is no code.
NO_CODE = {"Citation", "A card"}
#: Commands that take a minute each, which other tests run.
TAKES_LONG = re.compile(r"^collidium (demo|simulate --preset).*$", re.MULTILINE)
#: From the source, which a user has in the directory.
FROM_SOURCE = re.compile(r"^pip install '\.\[.*$", re.MULTILINE)
SECTIONS = ("", "datasets", "hub", "leaderboard", "models", "simulate")


@dataclass(frozen=True, slots=True)
class Shown:
    """A block of code, the label that the page gives it, and the page."""

    code: str
    label: str
    page: str

    @property
    def section(self) -> str:
        return self.page.split("/")[1]

    @property
    def kind(self) -> tuple[str, ...]:
        """What code of one kind has in common: how its lines begin."""
        return (self.label, *re.findall(r"^[\w.]+(?: \w+)?", self.code, re.MULTILINE))


@dataclass(frozen=True, slots=True)
class Site:
    """A server, a user who took part in everything, and a directory with the user's files."""

    server: ServerProcess
    token: str
    directory: Path

    def run(self, *arguments: str, cwd: Path | None = None) -> None:
        own = {"PLATFORM_BACKEND": self.server.base_url, "HF_TOKEN": self.token}
        done = run_command(arguments, self.server.environment | own, cwd or self.directory)
        assert done.returncode == 0, done.stderr

    def visit(self) -> Iterator[Shown]:
        """Every block of code on the pages that links lead to."""
        with Visitor(self.server.base_url) as visitor:
            visitor.sign_in(self.token)
            waiting, seen = ["/"], {"/"}
            while waiting:
                answer = visitor.get(waiting.pop(0), follow_redirects=True)
                if "text/html" not in answer.headers["Content-Type"]:
                    continue
                yield from _blocks(answer)
                for path in _links(answer):
                    if path not in seen:
                        seen.add(path)
                        waiting.append(path)


def _links(answer: httpx.Response) -> Iterator[str]:
    """The paths of other pages, without what a query chooses on them, and without files."""
    own = (answer.url.scheme, answer.url.netloc.decode())
    for found in re.findall(r'href="([^"#?]+)"', answer.text):
        address = urlsplit(urljoin(str(answer.url), unescape(found)))
        if (address.scheme, address.netloc) == own and not re.search("/resolve/|/static/", address.path):
            yield address.path


def _blocks(answer: httpx.Response) -> Iterator[Shown]:
    for attributes, text in re.findall(r"<pre([^>]*)>(.*?)</pre>", answer.text, re.DOTALL):
        label = re.search(r'aria-label="([^"]*)"', attributes)
        code = unescape(re.sub(r"<[^>]+>", "", text)).strip()
        yield Shown(code, label[1] if label else "", answer.url.path)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Seeded, with a file, a model and a finished order of ada."""
    directory = tmp_path_factory.mktemp("ada")
    events = directory / "made.parquet"
    pq.write_table(pa.table({"event_id": range(10), "px": [[0.5]] * 10}), events)
    environment = allowance() | {
        "PLATFORM_RUN_MODE": "real",
        "PLATFORM_RUNNER": "local",
        "PLATFORM_PIPELINE_COMMAND": f"cp {events} {{output}}/particles.parquet",
        "PLATFORM_POLL_SECONDS": "0.1",
    }
    with ServerProcess(tmp_path_factory.mktemp("shown"), env=environment) as server:
        site = Site(server, server.add_user("ada"), directory)
        site.run("seed", "--size", "demo", "--tasks", TASK)
        _take_part(site)
        yield site


def _take_part(site: Site) -> None:
    site.run("start", TASK, "folder")
    trained = subprocess.run(
        [sys.executable, "train.py"],
        env=site.server.environment,
        cwd=site.directory / "folder",
        capture_output=True,
        text=True,
    )
    assert trained.returncode == 0, trained.stderr
    shutil.copy(site.directory / "folder" / "predictions.parquet", site.directory)
    site.run("submit", TASK, "predictions.parquet")
    site.run("model", "example", TASK, "deepsets", "--output", "model")
    for name in ("model.onnx", "manifest.toml"):
        shutil.copy(site.directory / "model" / name, site.directory)
    site.run("submit", TASK, "--model", "model.onnx", "--manifest", "manifest.toml", "--wait")
    with Client(site.server.base_url, site.token) as ada:
        request = ada.simulate(channel="single_muon", events=10, pileup=0)
        assert ada.wait(request.request_id).state == "completed"


@pytest.fixture(scope="module")
def shown(site: Site) -> list[Shown]:
    """Each block once; those of files and models that others submitted cannot be run by ada."""
    with Client(site.server.base_url, site.token) as ada:
        own = {submission.submission_id for submission in ada.submissions()}
    found = {block.code: block for block in site.visit()}
    return [
        block
        for block in found.values()
        if "/submissions/" not in block.page or block.page.rpartition("/")[2] in own
    ]


@pytest.mark.parametrize("section", SECTIONS)
def test_shown_code_runs_where_it_is_pasted(
    site: Site, shown: list[Shown], programs: Path, section: str, tmp_path: Path
) -> None:
    blocks = {block if LONG else block.kind: block for block in shown if block.section == section}
    codes = [block for block in blocks.values() if block.label not in NO_CODE]
    assert codes, "the pages were visited"
    for block in codes:
        _run(block, site, programs, tmp_path)


def test_pages_show_code_of_every_kind(shown: list[Shown]) -> None:
    """What is shown and how it is run here; a new kind of page is added on purpose."""
    assert {block.label for block in shown if block.section in SECTIONS} == {
        "",
        "A card",
        "Citation",
        "Command",
        "Commands",
        "Commands that check and score the file again",
        "Commands that run the model again",
        "Download it",
        "Download the evaluation data",
        "Download the training data",
        "DuckDB",
        "List a model from Python",
        "Python",
        "Submit with a model",
        "The same from a shell",
        "pandas",
    }
    assert {block.section for block in shown} <= set(SECTIONS)


def _run(block: Shown, site: Site, programs: Path, home: Path) -> None:
    code = block.code.replace("your-name/", "ada/")
    if code.startswith("SELECT "):
        (url,) = re.findall(r"'(http[^']*)'", code)
        assert pq.read_table(BytesIO(httpx.get(url, trust_env=False).content)).num_rows
        return
    if code.startswith(("from ", "import ")):
        command = [str(programs / "python"), "-c", code]
    else:
        assert code.startswith(("collidium ", "export ", "pip ")), block
        lines = FROM_SOURCE.sub("", code if LONG else TAKES_LONG.sub("", code))
        command = ["sh", "-ec", lines.replace("collidium login ", "collidium login --token-stdin ")]
    path = f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    own = {"PATH": path, "PIP_NO_INDEX": "1", "HF_TOKEN": site.token}
    done = subprocess.run(
        command,
        env=isolated_environment(home, own),
        cwd=site.directory,
        input=site.token,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, (block, done.stdout, done.stderr)
