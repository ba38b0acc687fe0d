"""Rosters of the local hub: accounts from CSV files, and links that sign in once."""

from __future__ import annotations

import csv
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.core.api.conftest import import_truth

from collidium.errors import InvalidInput
from collidium.testing.server import ServerProcess
from collidium_plugins.local_hub import accounts, roster
from collidium_plugins.local_hub.store import Store

STUDENTS = "name;Display Name;E-Mail\nanna;Anna Mu\u0308ller;anna@example.org\nbo;王小明;\nfz;शर्\u200dमा;\n"


def add(directory: Path, content: bytes, **options: bool) -> list[accounts.HubAccount]:
    with closing(Store(directory)) as store, store.database.writing() as db:
        return roster.add_people(db, *roster.read_roster(content), **options)


def listed(directory: Path) -> list[str]:
    with closing(Store(directory)) as store, store.database.reading() as db:
        return [account.name for account, _ in accounts.list_accounts(db)]


def test_names_of_any_script_are_kept_as_nfc(tmp_path: Path) -> None:
    made = add(tmp_path / "hub", STUDENTS.encode("utf-8-sig"))
    assert [account.display_name for account in made] == ["Anna Müller", "王小明", "शर्\u200dमा"]
    assert made[0].email == "anna@example.org"


def test_every_bad_line_is_reported_and_no_account_is_added(tmp_path: Path) -> None:
    add(tmp_path / "hub", b"name\nanna\n")
    lines = [
        ("ANNA", "", ""),
        ("bo", "\u202ebo", "bo"),
        ("bo", "x" * 101, "a@b c"),
        ("erased-3", "=cmd()", ""),
        ("c" * 10_000, "a\tb\x07", ""),
        ("fine", "'t Hooft, Gerard", "g@example.org"),
        ("d", "\ud7ff\ue000", ""),
    ]
    text = "name,display name,email\n" + "".join(
        f'{name},"{shown}",{email}\n' for name, shown, email in lines
    )
    with pytest.raises(InvalidInput) as refused:
        add(tmp_path / "hub", (text + "e,f\n").encode())
    assert [(problem["line"], problem.get("field")) for problem in refused.value.errors] == [
        (2, "name"),
        (3, "display name"),
        (3, "email"),
        (4, "name"),
        (4, "display name"),
        (4, "email"),
        (5, "name"),
        (5, "display name"),
        (6, "name"),
        (6, "display name"),
        (8, "display name"),
        (9, None),
    ]
    assert listed(tmp_path / "hub") == ["anna"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"name\n",
        b"\xff\xfen\x00a\x00",
        b"display name\nAnna\n",
        b"name,name\na,b\n",
        b"name,mark\na,1\n",
        b'name\n"anna\n',
        b"name\n" + b"x" * 5_000_000,
    ],
)
def test_a_file_that_is_no_roster_is_refused(content: bytes, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput):
        add(tmp_path / "hub", content)


def test_existing_accounts_are_skipped_on_request(tmp_path: Path) -> None:
    add(tmp_path / "hub", b"name\nanna\n")
    made = add(tmp_path / "hub", b"name\nAnna\nbo\n", skip_existing=True)
    assert [account.name for account in made] == ["bo"]


# -- links ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    environment = {"PLATFORM_IDENTITY_CACHE_SECONDS": "0"}
    with ServerProcess(tmp_path_factory.mktemp("server"), env=environment) as running:
        yield running


@pytest.fixture(scope="module")
def links(server: ServerProcess) -> dict[str, str]:
    """The links of a roster, by account, as addresses of the server."""
    (server.directory / "students.csv").write_text(STUDENTS)
    order = ("user", "add", "--csv", "students.csv", "--output", "links.csv")
    done = server.run(*order)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    file = server.directory / "links.csv"
    assert file.stat().st_mode & 0o777 == 0o600
    assert server.run(*order, "--skip-existing").returncode == 3  # the file is there
    assert server.run("user", "add", "--csv", "students.csv").returncode == 3
    with file.open(newline="") as rows:
        return {row["name"]: address(server, row["link"]) for row in csv.DictReader(rows)}


def address(server: ServerProcess, link: str) -> str:
    """Links are of PLATFORM_PUBLIC_URL, which no server on a port of its own choice has."""
    return f"{server.base_url}/hub/{link.partition('/hub/')[2]}"


@pytest.fixture
def browser(server: ServerProcess) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.base_url, timeout=30, trust_env=False) as client:
        yield client


def press(browser: httpx.Client, link: str, **headers: str) -> httpx.Response:
    """Send the form of the link's page."""
    where, _, secret = link.partition("?link=")
    return browser.post(where, data={"link": secret}, headers={"Origin": str(browser.base_url)} | headers)


def whoami(browser: httpx.Client, token: str) -> Any:
    return browser.get("/hub/api/whoami-v2", headers={"Authorization": f"Bearer {token}"})


def test_a_link_signs_in_once_and_gives_a_token(
    server: ServerProcess, links: dict[str, str], browser: httpx.Client
) -> None:
    link = links["anna"]
    import_truth(server)
    course = {"name": "roster-course", "task": "tracking", "title": "Tracks & more"}
    headers = {"X-Admin-Token": server.admin_token}
    made = browser.post("/admin/challenges", json=course, headers=headers)
    assert made.status_code == 201, made.text
    for _ in range(2):  # previews use nothing up
        assert browser.head(link).status_code == 200
        page = browser.get(link)
        assert (page.status_code, "Anna Müller" in page.text) == (200, True)
        assert page.headers["Referrer-Policy"] == "same-origin"
    assert press(browser, link, **{"Sec-Fetch-Site": "cross-site"}).status_code == 403
    welcome = press(browser, link)
    assert welcome.status_code == 200, welcome.text
    token = welcome.text.partition('<pre id="token">')[2].partition("<")[0]
    assert f"export PLATFORM_BACKEND={server.base_url}\ncollidium login" in welcome.text
    assert f'href="{server.base_url}/leaderboard/roster-course">Tracks &amp; more</a>' in welcome.text
    assert "/leaderboard/tracking" not in welcome.text
    assert browser.get("/v1/me").json()["hub_username"] == "anna"  # by its cookie
    about = whoami(browser, token).json()
    assert (about["fullname"], about["email"]) == ("Anna Müller", "anna@example.org")
    for again in (browser.get(link), press(browser, link)):
        assert (again.status_code, "was used" in again.text) == (404, True)
        assert "collidium user reset" in again.text
    secret = link.partition("?link=")[2]
    log = server.log()
    assert secret not in log
    assert token not in log
    until = {row["name"]: row["link_until"] for row in _users(server)}
    assert (until["anna"], until["bo"] is not None) == (None, True)


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1"])
def test_other_sites_sign_nobody_in(server: ServerProcess, name: str) -> None:
    """Over plain HTTP, browsers send no Sec-Fetch-Site to a name of the network."""
    link = address(server, server.run("user", "add", f"eve-{name}") and _link_of(server, f"eve-{name}"))
    port = server.base_url.rpartition(":")[2]
    own, own_page = f"http://{name}:{port}", f"http://{name}:{port}/hub/join?link=x"
    with httpx.Client(base_url=own, timeout=30, trust_env=False) as browser:
        link = own + link.removeprefix(server.base_url)
        for sent in (
            {},
            {"Origin": "null"},
            {"Origin": "null", "Referer": own_page},
            {"Origin": "http://evil.example"},
            {"Origin": f"http://{name}:1"},
            {"Referer": f"http://evil.example/{own_page}"},
            {"Origin": own, "Sec-Fetch-Site": "cross-site"},
        ):
            where, _, secret = link.partition("?link=")
            answer = browser.post(where, data={"link": secret}, headers=sent)
            assert (answer.status_code, dict(browser.cookies)) == (403, {}), sent
            consent = browser.post("/hub/oauth/authorize", data={"ticket": "x"}, headers=sent)
            assert consent.status_code == 403, sent
        answer = browser.post(where, data={"link": secret}, headers={"Referer": own_page})
        assert (answer.status_code, list(browser.cookies)) == (200, ["collidium_session"])


def _link_of(server: ServerProcess, name: str) -> str:
    return server.run("user", "reset", name).stdout.strip()


def test_a_reset_withdraws_all_and_gives_a_new_link(
    server: ServerProcess, links: dict[str, str], browser: httpx.Client
) -> None:
    assert press(browser, links["bo"]).status_code == 200
    assert browser.get("/v1/me").status_code == 200
    first = address(server, server.run("user", "reset", "bo").stdout.strip())
    assert browser.get("/v1/me").status_code == 401
    second = address(server, server.run("user", "reset", "bo").stdout.strip())
    assert (browser.get(first).status_code, browser.get(second).status_code) == (404, 200)
    with closing(sqlite3.connect(server.data_dir / "hub" / "hub.sqlite3")) as db, db:
        db.execute("UPDATE sign_in_links SET expires_at = '2026-01-01T00:00:00.000Z'")
    assert press(browser, second).status_code == 404
    assert server.run("user", "reset", "unknown").returncode == 3


def test_a_banned_account_uses_no_link_up(server: ServerProcess, browser: httpx.Client) -> None:
    link = server.run("user", "add", "mallory") and server.run("user", "reset", "mallory").stdout.strip()
    admin = {"X-Admin-Token": server.admin_token}
    for banned, status in ((True, 403), (False, 200)):
        body = {"hub_username": "mallory", "banned": banned}
        assert browser.post("/admin/ban", json=body, headers=admin).status_code == 200
        assert press(browser, address(server, link)).status_code == status


def test_an_unused_account_is_removed_and_no_other(server: ServerProcess, links: dict[str, str]) -> None:
    assert server.run("user", "add", "typo").returncode == 0
    assert server.run("user", "remove", "typo").returncode == 0
    assert "typo" not in [row["name"] for row in _users(server)]
    with httpx.Client(base_url=server.base_url, timeout=30, trust_env=False) as browser:
        press(browser, address(server, server.run("user", "reset", "fz").stdout.strip()))
    refused = server.run("user", "remove", "fz")
    assert (refused.returncode, "user erase" in refused.stderr) == (3, True)


def _users(server: ServerProcess) -> list[dict[str, Any]]:
    done = server.run("user", "list", "--json")
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found
