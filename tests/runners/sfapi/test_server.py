"""The tests' Superfacility API: the library itself works with it."""

from __future__ import annotations

import io
import os

from sfapi_client import AsyncClient
from sfapi_client.paths import AsyncRemotePath
from tests.runners.sfapi.superfacility import Superfacility


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
