"""Links of submissions: set by repeated submissions and by PATCH, and checked on the hub."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import pyarrow as pa
import pytest
from huggingface_hub import HfApi, ModelCard
from tests.core.cli.conftest import Caller
from tests.hub import HubServer, own_hub

from collidium.accounts.identities import MODEL_QUESTIONS
from collidium.testing.plugin import StartServer
from collidium.testing.server import ServerProcess

from .conftest import SUBMIT, calling, import_truth, name_of, ok, parquet, signed_in, spoiled

__all__ = ["own_hub"]

BOARD = "/v1/leaderboard/tracking?all=true&limit=1000"

_rows = count(1)


@pytest.fixture
def file(oracle: pa.Table) -> bytes:
    """Predictions that were not sent before."""
    return parquet(oracle.slice(0, next(_rows)))


@pytest.fixture
def bob(platform: ServerProcess) -> Iterator[httpx.Client]:
    with signed_in(platform, f"bob{next(_rows)}") as client:
        yield client


def submit(client: httpx.Client, file: bytes, model: str | None = None) -> httpx.Response:
    return client.post(SUBMIT, content=file, params={"model_repo": model} if model else {})


def submitted(client: httpx.Client, file: bytes, model: str | None = None) -> str:
    return f"/v1/submissions/{ok(submit(client, file, model))['submission_id']}"


def share(client: httpx.Client, name: str, *, private: bool = False) -> str:
    """A model repository of the client's account on the real local hub."""
    token = client.headers["Authorization"].removeprefix("Bearer ")
    hub = HfApi(f"{str(client.base_url).rstrip('/')}/hub", token)
    return hub.create_repo(f"{name_of(client)}/{name}", private=private).repo_id


def model_of(client: httpx.Client, address: str) -> tuple[str | None, str | None]:
    """Model and claim, the same wherever they are shown."""
    kept = client.get(address).json()
    shown = kept["model_repo"], kept["model_claim"]
    for path in (BOARD, "/v1/me/submissions"):
        (one,) = (one for one in client.get(path).json() if one["submission_id"] == kept["submission_id"])
        assert (one["model_repo"], one["model_claim"]) == shown
    return shown


# -- the same file again ------------------------------------------------------------------------------


def test_the_same_file_again_links_the_model(alice: httpx.Client, file: bytes) -> None:
    repo = share(alice, "late")
    address = submitted(alice, file)
    assert model_of(alice, address) == (None, None)
    again = ok(submit(alice, file, repo))
    assert (again["deduplicated"], again["model_repo"], again["model_claim"]) == (True, repo, "verified")
    assert model_of(alice, address) == (repo, "verified")


def test_another_model_of_the_same_file_is_409(alice: httpx.Client, file: bytes) -> None:
    address = submitted(alice, file, "lab/one")
    answer = submit(alice, file, "lab/other")
    assert answer.status_code == 409
    for part in (address, "lab/one"):
        assert part in answer.json()["detail"]
    for same in ("lab/one", None):
        assert submit(alice, file, same).json()["deduplicated"] is True
    assert alice.get(address).json()["model_repo"] == "lab/one"


@pytest.mark.parametrize("is_first", [True, False])
def test_models_at_once_link_one(alice: httpx.Client, file: bytes, is_first: bool) -> None:
    """Of different models for one file, one is linked, and the others learn that from the answer."""
    if not is_first:
        submitted(alice, file)
    models = [f"lab/model{number}" for number in range(4)]
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(lambda model: submit(alice, file, model), models))
    assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409]
    (taken,) = (model for model, answer in zip(models, answers, strict=True) if answer.is_success)
    (mine,) = alice.get("/v1/me/submissions").json()
    assert mine["model_repo"] == taken
    for answer in answers:
        assert answer.is_success or taken in answer.json()["detail"]


# -- what the hub knows -------------------------------------------------------------------------------


def test_claims_are_of_the_submitters_token(alice: httpx.Client, bob: httpx.Client, file: bytes) -> None:
    """One's own repository, a private one, another's, another's private one, none."""
    own, private = share(alice, "own"), share(alice, "private", private=True)
    others, hidden = share(bob, "open"), share(bob, "hidden", private=True)
    address = submitted(alice, file, own)
    assert model_of(alice, address) == (own, "verified")
    for repo, claim in (
        (private, "verified"),
        (others, "unverified"),
        (hidden, "missing"),
        (f"{name_of(alice)}/nothing", "missing"),
        (own, "verified"),
    ):
        ok(alice.patch(address, json={"model_repo": repo}))
        assert model_of(alice, address) == (repo, claim)


def test_a_claim_is_checked_again_when_it_is_set_again(alice: httpx.Client, file: bytes) -> None:
    repo = f"{name_of(alice)}/later"
    address = submitted(alice, file, repo)
    assert model_of(alice, address) == (repo, "missing")
    share(alice, "later")
    assert submit(alice, file, repo).json()["model_claim"] == "missing"
    assert alice.patch(address, json={"model_repo": repo}).json()["model_claim"] == "verified"
    assert model_of(alice, address) == (repo, "verified")


# -- PATCH --------------------------------------------------------------------------------------------


def test_links_are_set_kept_and_removed(alice: httpx.Client, file: bytes) -> None:
    address = submitted(alice, file, "lab/one")
    code, paper = "https://github.com/lab/one", 'https://arxiv.org/abs/2601.00001?a=<b>&c="ö"'
    kept_paper = "https://arxiv.org/abs/2601.00001?a=%3Cb%3E&c=%22%C3%B6%22"
    links = ("model_repo", "code_url", "paper_url")
    for body, shown in (
        ({}, ("lab/one", None, None)),
        ({"code_url": code}, ("lab/one", code, None)),
        ({"paper_url": paper}, ("lab/one", code, kept_paper)),
        ({"code_url": None, "model_repo": "lab/two"}, ("lab/two", None, kept_paper)),
        ({"model_repo": None, "paper_url": None}, (None, None, None)),
    ):
        kept = ok(alice.patch(address, json=body))
        assert tuple(kept[name] for name in links) == shown
        assert kept == alice.get(address).json()
    assert model_of(alice, address) == (None, None)


def test_links_are_their_owners_to_set(alice: httpx.Client, bob: httpx.Client, file: bytes) -> None:
    address = submitted(alice, file)
    body = {"model_repo": "lab/one"}
    assert bob.patch(address, json=body).status_code == 403
    for unknown in ("0" * 32, "nothing", "%00"):
        assert bob.patch(f"/v1/submissions/{unknown}", json=body).status_code == 404
    assert alice.get(address).json()["model_repo"] is None


HOSTILE_URLS = (
    "http://plain.example/",
    "javascript:alert(1)",
    "JavaScript://x.example/%0aalert(1)",
    "data:text/html,<script>alert(1)</script>",
    "//no-scheme.example",
    "https://",
    "https:///path",
    "https://user:secret@host.example/",
    "https://good.example\\@evil.example/",
    'https://a.example"onclick="alert(1)/',
    "https://a.example/\r\nX: y",
    "https://a.example/\0",
    "https://a.example/\ud800",
    "https://a.example:99999/",
    "https://" + "a" * 500 + ".example/",
    "https://a.example/" + "ö" * 400,
    " ",
    "",
)


def test_hostile_urls_are_refused_all_at_once(alice: httpx.Client, file: bytes) -> None:
    address = submitted(alice, file, "lab/kept")
    for url in HOSTILE_URLS:
        answer = patch(alice, address, {"code_url": url, "paper_url": url, "model_repo": None})
        assert answer.status_code == 422, (url, answer.text)
        assert [error["field"] for error in answer.json()["errors"]] == ["code_url", "paper_url"], url
        assert "secret" not in answer.text
    assert shown_links(alice, address) == ("lab/kept", None, None)


@pytest.mark.parametrize(
    "body",
    [
        *(
            {"model_repo": repo}
            for repo in ("", "x", "a/b/c", "../x", "a/..", "a/\0", "a/b\n", "a/\ud800", "é/b")
        ),
        {"model_repo": "a/" + "b" * 300},
        {"model_repo": "a/" + "b" * 97},
        *({"code_url": value} for value in (1, True, [], {}, ["https://a.example/"])),
        {"verified_at": "2026-01-01T00:00:00Z"},
        {"model_claim": "verified"},
        *([], None, "x", 7),
    ],
    ids=repr,
)
def test_hostile_bodies_are_refused(alice: httpx.Client, body: object) -> None:
    """Before it is looked whose submission it is."""
    answer = patch(alice, f"/v1/submissions/{'0' * 32}", body)
    assert answer.status_code in {400, 422}, answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"


def patch(client: httpx.Client, address: str, body: object) -> httpx.Response:
    """What httpx would not write as JSON, too."""
    return client.patch(address, content=json.dumps(body), headers={"Content-Type": "application/json"})


def shown_links(client: httpx.Client, address: str) -> tuple[str | None, ...]:
    kept = client.get(address).json()
    return kept["model_repo"], kept["code_url"], kept["paper_url"]


def test_changes_at_once_lose_nothing(alice: httpx.Client, file: bytes) -> None:
    """Of different links all are set; of one link one value, with the claim that belongs to it."""
    own = share(alice, "own")
    address = submitted(alice, file)
    bodies: list[dict[str, str]] = [
        {"code_url": "https://code.example/"},
        {"paper_url": "https://paper.example/"},
        {"model_repo": own},
        {"model_repo": "lab/nothing"},
    ]
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(lambda body: alice.patch(address, json=body), bodies))
    assert [answer.status_code for answer in answers] == [200] * 4
    assert shown_links(alice, address)[1:] == ("https://code.example/", "https://paper.example/")
    assert model_of(alice, address) in {(own, "verified"), ("lab/nothing", "missing")}


def test_a_patch_and_a_repeat_at_once_agree(alice: httpx.Client, file: bytes) -> None:
    """The repeated file links its model, or the answer names the other; it never overwrites that."""
    address = submitted(alice, file)
    with ThreadPoolExecutor(2) as threads:
        again = threads.submit(submit, alice, file, "lab/again")
        patched = threads.submit(alice.patch, address, json={"model_repo": "lab/patched"})
    assert patched.result().status_code == 200
    assert again.result().status_code in {200, 409}
    assert model_of(alice, address) == ("lab/patched", "missing")


def test_checks_of_models_are_limited_by_account(alice: httpx.Client, bob: httpx.Client, file: bytes) -> None:
    """Each asks the hub, with the burst of one account; others are not delayed by it."""
    mine, theirs = submitted(alice, file), submitted(bob, file)
    limited, chosen = [], None
    for number in range(MODEL_QUESTIONS + 10):
        answer = alice.patch(mine, json={"model_repo": "lab/one", "final": number % 2 == 0})
        if answer.status_code == 200:
            chosen = answer.json()["chosen_at"]
        else:
            limited.append(answer)
            assert alice.get(mine).json()["chosen_at"] == chosen, "all of a change, or nothing"
    assert limited
    assert {(answer.status_code, answer.headers["Retry-After"] > "0") for answer in limited} == {(429, True)}
    assert alice.patch(mine, json={"code_url": "https://code.example/"}).status_code == 200
    assert bob.patch(theirs, json={"model_repo": "lab/one"}).status_code == 200


def test_a_banned_account_sets_no_links(alice: httpx.Client, operator: httpx.Client, file: bytes) -> None:
    address = submitted(alice, file)
    operator.post("/admin/ban", json={"hub_username": name_of(alice), "banned": True}).raise_for_status()
    assert alice.patch(address, json={"model_repo": "lab/one"}).status_code == 403


def test_without_the_hub_a_claim_is_unverified(
    start_server: StartServer, own_hub: HubServer, file: bytes
) -> None:
    """The submission is kept all the same, and the claim checked when it is set again."""
    repo = own_hub.api("ada").create_repo("ada/helix").repo_id
    server = start_server({"PLATFORM_HUB_URL": own_hub.url})
    import_truth(server)
    with calling(server, Authorization=f"Bearer {own_hub.token('ada')}") as ada:
        assert ada.get("/v1/me").status_code == 200  # from now on the token is known
        own_hub.end()
        address = submitted(ada, file, repo)
        assert model_of(ada, address) == (repo, "unverified")
        assert ada.patch(address, json={"model_repo": repo}).json()["model_claim"] == "unverified"
        own_hub.start()
        assert ada.patch(address, json={"model_repo": repo}).json()["model_claim"] == "verified"
        own_hub.end()
        links = {"model_repo": repo, "code_url": "https://code.example/"}
        assert ada.patch(address, json=links).json()["model_claim"] == "verified"


def client_of(caller: Caller) -> httpx.Client:
    return calling(caller.server, Authorization=f"Bearer {caller.environment['HF_TOKEN']}")


def test_scores_go_to_the_card_of_the_owners_model(platform: ServerProcess, oracle: pa.Table) -> None:
    """By a command with the owner's token; the server writes nothing."""
    file = parquet(spoiled(oracle, 0.37))
    owner, other = Caller(platform, "maria"), Caller(platform, "mario")
    hub = HfApi(endpoint=f"{platform.base_url}/hub", token=owner.environment["HF_TOKEN"])
    hub.create_repo("maria/helix")
    with client_of(owner) as client:
        sent = submit(client, file).json()
        words = "publish-scores", sent["submission_id"]
        assert "names no model" in owner(*words).stderr
        assert submit(client, file, "maria/helix").status_code == 200
    planned = owner.data(*words, "--dry-run")
    assert planned["changed"]
    assert not hub.file_exists("maria/helix", "README.md")
    assert "belongs to maria" in other(*words).stderr
    assert owner.data(*words)["changed"]
    head = hub.model_info("maria/helix").sha
    assert not owner.data(*words)["changed"]
    assert hub.model_info("maria/helix").sha == head
    with client_of(other) as client:
        borrowed = submit(client, file, "maria/helix").json()["submission_id"]
    refused = other("publish-scores", borrowed)
    assert refused.returncode == 3
    assert "does not permit this to the owner" in refused.stderr
    assert hub.model_info("maria/helix").sha == head
    with TemporaryDirectory() as directory:
        path = hub.hf_hub_download("maria/helix", "README.md", local_dir=directory)
        results = ModelCard(Path(path).read_text()).data.eval_results
    assert results is not None
    assert {one.metric_type: one.metric_value for one in results} == sent["scores"]
    errors = [one.metric_args["standard_error"] for one in results if one.metric_args["standard_error"]]
    assert errors
    assert all(float(f"{error:.1e}") == error for error in errors), "two significant digits"
    assert {one.source_url for one in results} == {
        f"{platform.base_url}/leaderboard/tracking#s-{sent['submission_id']}"
    }
