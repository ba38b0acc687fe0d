"""The identity provider with a hub on loopback with scripted responses."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable

import pytest
from tests.stubs import Service, response
from tests.waiting import until

from collidium.accounts.identities import Identities
from collidium.contracts.identity import Identity, IdentityUnavailable
from collidium.settings import Settings
from collidium.submissions.submit import check_claim
from collidium_plugins.hub_identity import HubIdentity

TOKEN = "hub_a-token-that-must-stay-secret"

NOWHERE = "http://127.0.0.1:9"

Answer = tuple[int, str, str]
USER: Answer = (200, "application/json", '{"type": "user", "name": "ada"}')


class FakeHub(Service):
    """Answers every request with ``answer``; notes the tokens that it was sent."""

    def __init__(self) -> None:
        super().__init__()
        self.answer: Answer = USER
        #: What it is asked about.
        self.about = "whoami-v2"
        self.tokens: list[str] = []

    async def respond(self, head: bytes) -> bytes:
        assert head.startswith(f"GET /hub/api/{self.about} ".encode())
        lines = head.decode().splitlines()
        self.tokens += [line.split()[-1] for line in lines if line.startswith("Authorization:")]
        await self.gate.wait()
        status, media_type, body = self.answer
        headers = [f"Content-Type: {media_type}", "Location: /hub/other"]
        if status == 401 and "RepoNotFound" in body:  # as the hub answers to callers without an account
            headers.append("X-Error-Code: RepoNotFound")
        return response(status, body, *headers)


@pytest.fixture
async def hub() -> AsyncIterator[FakeHub]:
    async with FakeHub().running() as hub:
        yield hub


@pytest.fixture
async def make(hub: FakeHub) -> AsyncIterator[Callable[..., HubIdentity]]:
    made = []

    def make(timeout: float = 5, url: str = hub.url) -> HubIdentity:
        made.append(HubIdentity(f"{url}/hub", timeout_seconds=timeout))
        return made[-1]

    yield make
    for provider in made:
        await provider.close()


@pytest.fixture
def provider(make: Callable[..., HubIdentity]) -> HubIdentity:
    return make()


async def test_different_tokens_share_the_connections(hub: FakeHub, provider: HubIdentity) -> None:
    for number in range(10):
        await provider.identify(f"token-{number}")
    assert len(hub.tokens) == 10
    assert hub.connections == 1


@pytest.mark.parametrize("status", [401, 403])
async def test_a_rejected_token_has_no_account(hub: FakeHub, provider: HubIdentity, status: int) -> None:
    hub.answer = (status, "application/json", '{"error": "Invalid token"}')
    assert await provider.identify(TOKEN) is None


@pytest.mark.parametrize(
    ("auth", "read_only"),
    [
        ('{"accessToken": {"role": "read"}}', True),
        ('{"accessToken": {"role": "write"}}', False),
        ('{"accessToken": {"role": "fineGrained"}}', False),
        ('{"accessToken": null}', False),
        ('["read"]', False),
    ],
)
async def test_read_only_tokens_are_recognised(
    hub: FakeHub, provider: HubIdentity, auth: str, read_only: bool
) -> None:
    hub.answer = (200, "application/json", f'{{"type": "user", "name": "ada", "auth": {auth}}}')
    assert await provider.identify(TOKEN) == Identity("ada", read_only=read_only)


async def test_an_organisation_is_no_user(hub: FakeHub, provider: HubIdentity) -> None:
    hub.answer = (200, "application/json", '{"type": "org", "name": "cern"}')
    assert await provider.identify(TOKEN) is None


@pytest.mark.parametrize(
    ("orgs", "known"),
    [
        ('[{"type": "org", "name": "cern"}, {"name": "openlab", "roleInOrg": "write"}]', {"cern", "openlab"}),
        ('[{"name": "cern", "roleInOrg": "read"}, {"name": "lab", "roleInOrg": "admin"}]', {"lab"}),
        ('[{"name": "../x"}, {"name": 7}, {"fullname": "x"}, null, "cern", {"name": "lab"}]', {"lab"}),
        *((nonsense, set()) for nonsense in ("[]", "null", '"cern"', "7", '{"name": "cern"}')),
    ],
)
async def test_organisations_are_those_of_whoami(
    hub: FakeHub, provider: HubIdentity, orgs: str, known: set[str]
) -> None:
    hub.answer = (200, "application/json", f'{{"type": "user", "name": "ada", "orgs": {orgs}}}')
    found = await provider.identify(TOKEN)
    assert found is not None
    assert found.organisations == known
    assert found.memberships - known == ({"cern"} if '"read"' in orgs else set())


@pytest.mark.parametrize(
    ("answer", "repo", "claim"),
    [
        ((200, "application/json", '{"id": "ada/helix"}'), "ada/helix", "verified"),
        ((200, "application/json", '{"id": "cern/helix"}'), "cern/helix", "verified"),
        ((200, "application/json", '{"id": "CERN/helix"}'), "CERN/helix", "verified"),
        ((200, "application/json", '{"id": "Ada/helix"}'), "Ada/helix", "verified"),
        ((200, "application/json", '{"id": "bob/helix"}'), "bob/helix", "unverified"),
        ((404, "application/json", '{"error": "RepoNotFound"}'), "ada/helix", "missing"),
        ((401, "application/json", '{"error": "RepoNotFound"}'), "ada/helix", "missing"),
        *(
            ((status, "text/html", "<h1>Oops</h1>"), "ada/helix", None)
            for status in (302, 307, 401, 403, 429, 500, 503)
        ),
    ],
)
async def test_claims_are_checked_with_the_hub(
    hub: FakeHub,
    provider: HubIdentity,
    caplog: pytest.LogCaptureFixture,
    answer: Answer,
    repo: str,
    claim: str | None,
) -> None:
    identity = Identity("ada", organisations=frozenset({"cern"}))
    hub.about, hub.answer = f"models/{repo}", answer
    caplog.set_level(logging.DEBUG)
    assert await check_claim(Identities(provider, Settings()), identity, TOKEN, repo) == claim
    assert hub.tokens == [TOKEN]
    assert TOKEN not in caplog.text


@pytest.mark.parametrize("token", ["", " ", "a b", "a\nb", "tökén", "a\x00", "x" * 4097])
async def test_invalid_tokens_are_not_sent_to_the_hub(
    hub: FakeHub, provider: HubIdentity, token: str
) -> None:
    assert await provider.identify(token) is None
    assert hub.tokens == []


@pytest.mark.parametrize(
    "answer",
    [
        (500, "text/html", "<h1>Oops</h1>"),
        (502, "text/html", ""),
        (503, "application/json", "{}"),
        (404, "application/json", "{}"),
        (429, "application/json", "{}"),
        (302, "text/html", ""),
        (200, "text/html", "<html>Please log in</html>"),
        (200, "application/json", "{}"),
        (200, "application/json", "[]"),
        (200, "application/json", '{"name": null}'),
        (200, "application/json", '{"name": ""}'),
        (200, "application/json", '{"name": "../admin"}'),
        (200, "application/json", "[" * 100_000),
        (200, "application/json", '{"name": "' + "x" * 1_000_000 + '"}'),
        (204, "application/json", ""),
    ],
)
async def test_invalid_responses_are_not_cached(hub: FakeHub, provider: HubIdentity, answer: Answer) -> None:
    hub.answer = answer
    with pytest.raises(IdentityUnavailable):
        await provider.identify(TOKEN)
    hub.answer = USER
    assert await provider.identify(TOKEN) == Identity("ada"), "a failure was kept"


async def test_a_slow_hub_is_unavailable(hub: FakeHub, make: Callable[..., HubIdentity]) -> None:
    provider = make(timeout=0.05)
    hub.gate.clear()
    with pytest.raises(IdentityUnavailable, match=r"within 0\.05 s"):
        await provider.identify(TOKEN)
    hub.about = "models/ada/helix"
    assert await check_claim(Identities(provider, Settings()), Identity("ada"), TOKEN, "ada/helix") is None


async def test_a_hub_that_is_down_is_unavailable(make: Callable[..., HubIdentity]) -> None:
    provider = make(url=NOWHERE)
    outcomes = await asyncio.gather(*(provider.identify(TOKEN) for _ in range(5)), return_exceptions=True)
    assert all(isinstance(outcome, IdentityUnavailable) for outcome in outcomes)
    assert await check_claim(Identities(provider, Settings()), Identity("ada"), TOKEN, "ada/helix") is None


async def test_a_proxy_of_the_environment_is_not_for_loopback(
    hub: FakeHub, provider: HubIdentity, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    assert await provider.identify(TOKEN) == Identity("ada")


@pytest.mark.parametrize(
    "answer", [USER, (500, "text/html", "no"), (200, "text/html", "no"), (401, "a/b", "")]
)
async def test_the_token_is_in_no_log_and_no_error(
    hub: FakeHub, provider: HubIdentity, answer: Answer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    hub.answer = answer
    text = ""
    try:
        await provider.identify(TOKEN)
    except IdentityUnavailable as error:
        text = f"{error!r} {error.__cause__!r} {error.__context__!r}"
    assert TOKEN not in caplog.text + text


async def test_closing_while_asking_and_twice(hub: FakeHub, provider: HubIdentity) -> None:
    hub.gate.clear()
    waiting = asyncio.create_task(provider.identify(TOKEN))
    await until(lambda: len(hub.tokens) == 1)
    await provider.close()
    await provider.close()
    with pytest.raises(asyncio.CancelledError):
        await waiting
