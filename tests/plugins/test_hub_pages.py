"""Pages of repositories of the local hub."""

from __future__ import annotations

import re

import pytest

from .conftest import HubServer

HOSTILE = "</pre><script>alert(1)</script>"


@pytest.mark.parametrize(("kind", "prefix"), [("model", ""), ("dataset", "datasets/"), ("space", "spaces/")])
def test_a_public_repository_has_a_page_with_its_files(hub: HubServer, kind: str, prefix: str) -> None:
    api = hub.api("paige")
    repo = api.create_repo(
        f"paige/shown-{kind}", repo_type=kind, space_sdk="static" if kind == "space" else None
    ).repo_id
    card = f"---\ntags: [shared]\n---\n# Title\n{HOSTILE}\n".encode()
    for path, content in (("README.md", card), ("data/a b.txt", b"12345")):
        api.upload_file(repo_id=repo, repo_type=kind, path_in_repo=path, path_or_fileobj=content)
    with hub.http() as browser:
        page = browser.get(f"/{prefix}{repo}")
        assert page.status_code == 200
        assert "script-src" not in page.headers["Content-Security-Policy"]
        assert f"<h1>{repo}</h1>" in page.text
        assert "tags: shared" in page.text
        assert '<div class="card"><h3>Title</h3>' in page.text
        assert "shared]" not in page.text, "the front matter"
        assert HOSTILE not in page.text
        (address,) = re.findall(r'href="/hub([^"]+)" download>data/a b.txt<', page.text)
        assert browser.get(address).content == b"12345"


@pytest.mark.parametrize(
    "path", ["/paige/secret", "/paige/nothing", "/datasets/paige/secret", "/a%0ab/%3Cb%3E"]
)
def test_private_and_missing_repositories_look_alike(hub: HubServer, path: str) -> None:
    hub.api("paige").create_repo("paige/secret", private=True, exist_ok=True)
    with hub.http() as browser:
        answer = browser.get(path)
    assert answer.status_code == 404
    assert "No such repository" in answer.text
    assert "<b>" not in answer.text


def test_page_of_an_empty_and_of_a_large_repository(hub: HubServer) -> None:
    from huggingface_hub import CommitOperationAdd

    api = hub.api("paige")
    api.create_repo("paige/empty")
    api.create_repo("paige/large")
    files = [CommitOperationAdd(f"{number:03}.txt", b"x") for number in range(201)]
    api.create_commit("paige/large", files, commit_message="many")
    with hub.http() as browser:
        large = browser.get("/paige/large").text
        empty = browser.get("/paige/empty").text
    assert "There are more" in large
    assert "198.txt" in large
    assert "There are more" not in empty


def test_unknown_address_is_a_page_for_browsers_alone(hub: HubServer) -> None:
    with hub.http() as client:
        page = client.get("/api/nothing", headers={"Accept": "text/html,*/*;q=0.8"})
        answer = client.get("/api/nothing")
    assert (page.status_code, answer.status_code) == (404, 404)
    assert "<h1>This hub has no such address</h1>" in page.text
    assert f'href="{hub.url.removesuffix("hub")}"' in page.text
    assert answer.json() == {"error": "This hub has no such address"}
