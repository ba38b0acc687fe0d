"""Unknown tokens at a running server behind one proxy."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from collidium.testing.server import ServerProcess

BURST = 5


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    env = {
        "PLATFORM_UNKNOWN_TOKENS_BURST": str(BURST),
        "PLATFORM_UNKNOWN_TOKENS_PER_MINUTE": "1",
        "PLATFORM_TRUSTED_PROXIES": "1",
        "PLATFORM_IDENTITY_CACHE_SECONDS": "0",
    }
    with ServerProcess(tmp_path_factory.mktemp("limited"), env=env) as server:
        yield server


def me(server: ServerProcess, token: str, address: str) -> httpx.Response:
    headers = {"Authorization": f"Bearer {token}", "X-Forwarded-For": f"198.51.100.1, {address}"}
    return httpx.get(f"{server.base_url}/v1/me", headers=headers, trust_env=False, timeout=60)


def test_unknown_tokens_of_an_address_are_limited(limited: ServerProcess) -> None:
    ada = limited.add_user("ada")
    assert me(limited, ada, "192.0.2.1").status_code == 200
    answers = [me(limited, f"unknown-{number}", "192.0.2.1") for number in range(BURST + 3)]
    assert [answer.status_code for answer in answers] == [401] * (BURST - 1) + [429] * 4
    assert answers[-1].headers["Content-Type"] == "application/problem+json"
    assert answers[-1].json()["status"] == 429
    assert 1 <= int(answers[-1].headers["Retry-After"]) <= 60
    assert me(limited, ada, "192.0.2.1").status_code == 200
    assert me(limited, "unknown", "192.0.2.2").status_code == 401
    assert me(limited, limited.add_user("bob"), "192.0.2.2").status_code == 200
