"""Redirects that httpx follows, and those that are rejected."""

from __future__ import annotations

import httpx
import pytest

from collidium.runtime import public_addresses

#: What a resolver knows.
HOSTS = {
    "hub.example": "8.8.8.8",
    "files.example": "8.8.4.4",
    "inside.example": "10.1.2.3",
    "rebound.example": "169.254.169.254",
    "127.0.0.1": "127.0.0.1",
    "[::1]": "::1",
    "8.8.4.4": "8.8.4.4",
}


@pytest.fixture(autouse=True)
def resolver(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {host.strip("[]"): [address] for host, address in HOSTS.items()}
    monkeypatch.setattr(public_addresses, "look_up", lambda host: known.get(host, []))


def followed(start: str, *targets: str) -> list[str]:
    """Return the URLs that are requested when each response but the last redirects to the next."""
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(str(request.url))
        if len(asked) > len(targets):
            return httpx.Response(204)
        return httpx.Response(302, headers={"Location": targets[len(asked) - 1]})

    hooks = {"response": [public_addresses.refuse_redirect]}
    transport = httpx.MockTransport(answer)
    with httpx.Client(transport=transport, follow_redirects=True, event_hooks=hooks) as client:
        try:
            client.get(start)
        except httpx.InvalidURL:
            asked.append("refused")
    return asked


@pytest.mark.parametrize(
    "target",
    [
        "http://files.example/x",
        "http://hub.example/x",
        "https://inside.example/x",
        "https://rebound.example/latest/meta-data",
        "https://127.0.0.1/admin",
        "https://[::1]/admin",
        "https://ada:secret@files.example/x",
        "file:///etc/passwd",
        "gopher://files.example/x",
    ],
)
def test_a_public_service_redirects_to_no_private_address(target: str) -> None:
    assert followed("https://hub.example/a", target) == ["https://hub.example/a", "refused"]
    through = followed("https://hub.example/a", "https://files.example/b", target.replace("hub.", "files."))
    assert through[-1] == "refused"


@pytest.mark.parametrize(
    ("start", "target"),
    [
        ("https://hub.example/a", "https://files.example/x"),
        ("https://hub.example/a", "/b"),
        ("https://inside.example/a", "https://127.0.0.1/x"),
        ("http://127.0.0.1/a", "http://inside.example/x"),
        ("http://127.0.0.1/a", "https://files.example/x"),
    ],
)
def test_other_redirects_are_followed(start: str, target: str) -> None:
    assert followed(start, target) == [start, str(httpx.URL(start).join(target))]
