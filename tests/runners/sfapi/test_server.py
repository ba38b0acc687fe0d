"""The tests' Superfacility API: the library itself works with it, and it takes no invalid token."""

from __future__ import annotations

import io
import os
import time
from typing import Any

import httpx
import pytest
from authlib.oauth2.rfc7523 import private_key_jwt_sign
from joserfc.jwk import RSAKey
from sfapi_client import AsyncClient
from sfapi_client.paths import AsyncRemotePath
from tests.runners.sfapi.superfacility import Superfacility

ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"


@pytest.fixture
def http() -> httpx.Client:
    return httpx.Client(trust_env=False)


def ask_token(api: Superfacility, **changed: Any) -> httpx.Response:
    claims = {"client_id": api.client_id, "token_endpoint": api.token_url} | changed
    assertion = private_key_jwt_sign(RSAKey.import_key(api.key_file.read_text()), **claims)
    form = {
        "grant_type": "client_credentials",
        "client_assertion_type": ASSERTION,
        "client_assertion": assertion,
    }
    return httpx.post(api.token_url, data=form, trust_env=False)


async def test_the_library_submits_lists_sends_fetches_and_runs(api: Superfacility) -> None:
    key = api.key_file.read_text()
    async with AsyncClient(api.client_id, key, api_base_url=api.url, token_url=api.token_url) as client:
        machine = await client.compute("perlmutter")
        script = (
            f"#!/bin/bash\n#SBATCH --account={api.account}\n#SBATCH --job-name=x\ntouch {api.scratch}/made\n"
        )
        job = await machine.submit_job(script)
        assert list(api.batch.jobs) == [int(job.jobid)]
        sent = io.BytesIO(content := os.urandom(10_000))
        await AsyncRemotePath(path=f"{api.scratch}/sent", compute=machine).upload(sent)
        (listed,) = [path for path in await machine.ls(str(api.scratch)) if path.name == "sent"]
        assert listed.size == 10_000
        assert (await listed.download(binary=True)).read() == content
        assert await machine.run("echo hello") == "hello\n"
        assert (await client.user()).name == "tester"


@pytest.mark.parametrize(
    ("changed", "data"),
    [
        ({"client_id": "somebody"}, "another client's"),
        ({"token_endpoint": "https://elsewhere.example/token"}, "another audience"),
        ({"issued_at": 1, "expires_at": 2}, "expired"),
        ({"expires_at": int(time.time()) + 10**9}, "never does"),
        ({"alg": "RS512"}, "RS256"),
    ],
)
def test_an_assertion_that_proves_nothing(changed: dict[str, Any], data: str, api: Superfacility) -> None:
    answer = ask_token(api, **changed)
    assert answer.status_code == 401
    assert data in answer.json()["error_description"]


def test_a_signature_is_looked_at(api: Superfacility) -> None:
    good = ask_token(api)
    assert good.status_code == 200
    sent = dict(httpx.QueryParams(good.request.content.decode()))
    replayed = httpx.post(api.token_url, data=sent, trust_env=False)
    assert "used before" in replayed.json()["error_description"]
    head, claims, signature = sent["client_assertion"].split(".")
    for forged in (f"{head}.{claims}.{signature[::-1]}", f"{head}.{claims}.", "a.b.c", "", "..."):
        answer = httpx.post(api.token_url, data=sent | {"client_assertion": forged}, trust_env=False)
        assert answer.status_code == 401


def test_sign_in_needs_a_valid_token(api: Superfacility, http: httpx.Client) -> None:
    token = ask_token(api).json()["access_token"]
    jobs = f"{api.url}/compute/jobs/perlmutter"
    good = {"Authorization": f"Bearer {token}"}
    with http:
        assert http.get(f"{api.url}/status/perlmutter").status_code == 200
        assert http.get(jobs).status_code == 401
        assert http.get(jobs, headers={"Authorization": "Bearer x"}).status_code == 401
        assert http.get(jobs, headers=good).json() == {"status": "OK", "output": [], "error": None}
        assert http.get(f"{api.url}/nothing", headers=good).status_code == 404
        api.tokens.revoke_all()
        assert http.get(jobs, headers=good).status_code == 401
