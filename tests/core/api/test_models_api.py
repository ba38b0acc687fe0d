"""Models of the local hub, listed by HTTP, the clients and the command."""

from __future__ import annotations

import json
from collections.abc import Iterator

import httpx
import pytest
from huggingface_hub import HfApi
from tests.hub import token_on

from collidium.client import AsyncClient, Client
from collidium.testing.server import ServerProcess

from .conftest import ok


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A platform whose hub has five models with the tag, and two that are not to be listed."""
    with ServerProcess(tmp_path_factory.mktemp("server")) as server:
        mia, noa = (
            HfApi(f"{server.base_url}/hub", token_on(server.data_dir / "hub", name))
            for name in ("mia", "noa")
        )
        for number in range(3):
            share(mia, f"mia/pager-{number}", ["collidium", "pages"])
        share(mia, "mia/helix", ["collidium", "collidium-task:tracking", "collidium-task:jets", "gnn"])
        share(
            noa, "noa/arc", ["collidium", "gnn"], library_name="pytorch", description="Arcs,\n and  no lines."
        )
        share(noa, "noa/untagged", ["gnn", "collidium-task:tracking"])
        share(noa, "noa/secret", ["collidium"], private=True)
        yield server


def share(hub: HfApi, repo: str, tags: list[str], *, private: bool = False, **card: str) -> None:
    """Make a repository with a card, of JSON, which is YAML."""
    hub.create_repo(repo, private=private)
    readme = f"---\n{json.dumps({'tags': tags, **card})}\n---\n# A model\n"
    hub.upload_file(repo_id=repo, path_in_repo="README.md", path_or_fileobj=readme.encode())


def repos(server: ServerProcess, **query: object) -> list[str]:
    answer = httpx.get(f"{server.base_url}/v1/models", params=query, trust_env=False)
    return [model["model_repo"] for model in ok(answer)]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({}, ["noa/arc", "mia/helix", "mia/pager-2", "mia/pager-1", "mia/pager-0"]),
        ({"search": "HELI"}, ["mia/helix"]),
        ({"search": "noa/"}, ["noa/arc"]),
        ({"tag": "gnn"}, ["noa/arc", "mia/helix"]),
        ({"task": "jets"}, ["mia/helix"]),
        ({"task": "anomaly"}, []),
        ({"tag": "gnn", "search": "arc"}, ["noa/arc"]),
    ],
)
def test_public_models_with_the_tag_are_listed(
    shared: ServerProcess, query: dict[str, str], found: list[str]
) -> None:
    assert repos(shared, **query) == found


def test_a_model_is_shown_as_its_owners_describe_it(shared: ServerProcess) -> None:
    with Client(shared.base_url) as client:
        (arc,), (helix,) = client.models(search="arc"), client.models(search="helix")
    assert (arc.model_repo, arc.author) == ("noa/arc", "noa")
    assert arc.description == "Arcs, and no lines."
    assert arc.library == "pytorch"
    assert "gnn" in arc.tags
    assert "collidium" not in arc.tags
    assert arc.tasks == ()
    assert arc.url == f"{shared.base_url}/hub/noa/arc"
    assert arc.updated_at is not None
    assert helix.updated_at is not None
    assert helix.updated_at <= arc.updated_at
    assert sorted(helix.tasks) == ["jets", "tracking"]
    assert helix.description is None


async def test_pages_follow_each_other_to_the_end(shared: ServerProcess) -> None:
    found: list[str] = []
    async with AsyncClient(shared.base_url) as client:
        page = await client.models(tag="pages", limit=2)
        found += [model.model_repo for model in page]
        page = await client.models(tag="pages", limit=2, cursor=page.next_cursor)
        found += [model.model_repo for model in page]
    assert page.next_cursor is None
    assert found == ["mia/pager-2", "mia/pager-1", "mia/pager-0"]


def test_a_made_up_cursor_is_rejected(shared: ServerProcess) -> None:
    answer = httpx.get(f"{shared.base_url}/v1/models?cursor=made-up", trust_env=False)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "cursor"


def test_the_command_lists_them(shared: ServerProcess) -> None:
    done = shared.run("models", "--task", "jets")
    assert done.returncode == 0, done.stderr
    assert "mia/helix" in done.stdout
    assert "noa/arc" not in done.stdout
    assert json.loads(shared.run("models", "--search", "arc", "--json").stdout)[0]["library"] == "pytorch"
