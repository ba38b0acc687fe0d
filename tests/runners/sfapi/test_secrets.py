"""What is secret stays where it is, and what is hostile stays data."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from tests.runners.following import unavailable
from tests.runners.sfapi.conftest import MakeRunner, configured, handle, job
from tests.runners.sfapi.superfacility import Answer, HangUp, Superfacility
from tests.waiting import eventually_async

from collidium.contracts.runner import JobState, Runner, RunnerRefused, RunnerUnavailable
from collidium.errors import ConfigurationError
from collidium_runners.sfapi import collidium_runners
from collidium_runners.sfapi.runner import SfapiRunner, Site


def scripts(api: Superfacility) -> list[str]:
    return [parse_qs(call.body.decode())["job"][0] for call in api.calls if call.method == "POST"]


async def test_no_secret_is_in_a_script_a_log_or_an_error(
    api: Superfacility, runner: Runner, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    errors: list[str] = []
    not_taken = Answer(200, '{"status": "ERROR", "error": "sbatch: error: no"}', "application/json")
    faults = (
        (HangUp(), "/token"),
        (Answer(500), "/token"),
        (Answer(500), "/compute"),
        (not_taken, "/compute"),
    )

    with caplog.at_level(logging.DEBUG):
        submitted = await runner.submit(job())
        await eventually_async(lambda: _completed(runner, submitted))
        await runner.collect(submitted, tmp_path, 2**30)
        for number, (behaviour, where) in enumerate(faults):
            api.tokens.revoke_all()
            api.misbehave(behaviour, where=where)
            with pytest.raises(RunnerUnavailable) as caught:
                await runner.submit(job(f"broken{number}"))
            errors += [repr(caught.value), repr(caught.value.__cause__), repr(caught.value.__context__)]
    key = api.key_file.read_text().splitlines()[1:-1]
    places = [*scripts(api), caplog.text, *errors, repr(runner)]
    assert len(scripts(api)) == 1
    for secret in (*api.tokens.issued, *key, api.client_id):
        assert not any(secret in place for place in places)


async def _completed(runner: Runner, submitted: str) -> bool:
    return (await runner.poll(submitted)).state == JobState.COMPLETED


@pytest.mark.parametrize(
    "channel",
    [
        "ttbar'; touch injected; '",
        "$(touch injected)",
        "`touch injected`",
        "ttbar\n#SBATCH --account=other\ntouch injected",
        '"; touch injected #',
    ],
)
async def test_a_hostile_channel_stays_one_argument(
    channel: str, api: Superfacility, make_runner: MakeRunner, tmp_path: Path
) -> None:
    runner = make_runner(
        pipeline_command='sh -c \'printf %s "$1" >"$0/particles.parquet"\' {output} {channel}'
    )
    submitted = await runner.submit(job(channel=channel))
    await eventually_async(lambda: _completed(runner, submitted))
    (file,) = await runner.collect(submitted, tmp_path / "output", 2**30)
    assert file.read_text() == channel
    assert not list(api.scratch.parent.rglob("injected"))
    (batch_job,) = api.batch.jobs.values()
    assert batch_job.options["account"] == api.account


@pytest.mark.parametrize(
    "request_id", ["r1\n#SBATCH --account=other", "../r1", "r 1", "", "r1;x", "-r", "a" * 65]
)
async def test_a_hostile_request_id_is_refused(request_id: str, api: Superfacility, runner: Runner) -> None:
    with pytest.raises(RunnerRefused):
        await runner.submit(job(request_id))
    assert await runner.find(request_id) is None
    assert not api.calls


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("sfapi_account", "m1\n#SBATCH --time=9999"),
        ("sfapi_qos", "regular --exclusive"),
        ("sfapi_constraint", "cpu;reboot"),
        ("sfapi_directory", "/scratch/$(reboot)"),
        ("sfapi_directory", "scratch"),
        ("sfapi_machine", "../status"),
        ("sfapi_client_id", "a b"),
        ("sfapi_url", "http://api.example/v1"),
        ("sfapi_url", "https://user:secret@api.example/v1"),
        ("sfapi_token_url", "ftp://api.example/token"),
    ],
)
def test_a_hostile_setting_is_refused(setting: str, value: str, api: Superfacility) -> None:
    with pytest.raises(ConfigurationError, match=f"PLATFORM_{setting.upper()}") as caught:
        configured(api, **{setting: value})
    assert "secret" not in str(caught.value)


# -- what is missing ----------------------------------------------------------------------------------


def test_a_chosen_runner_says_everything_that_it_lacks(
    api: Superfacility, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sfapi_client", None)
    lacking = configured(
        api, sfapi_client_id="", sfapi_key_file=None, sfapi_directory="", pipeline_command="simulate"
    )
    with pytest.raises(ConfigurationError) as caught:
        collidium_runners(lacking)
    for data in (
        "pip install 'collidium[sfapi]'",
        "PLATFORM_SFAPI_CLIENT_ID is not set",
        "PLATFORM_SFAPI_KEY_FILE is not set",
        "PLATFORM_SFAPI_DIRECTORY is not set",
        "PLATFORM_PIPELINE_COMMAND: {output} is missing",
    ):
        assert data in caught.value.detail


async def test_an_unselected_runner_is_listed_as_unavailable(api: Superfacility) -> None:
    """It may have to follow what was handed to it before."""
    settings = configured(api, run_mode="mock", runner="", sfapi_key_file=None)
    (runner,) = collidium_runners(settings)
    with unavailable("not set up", operators="PLATFORM_SFAPI_KEY_FILE is not set"):
        await runner.poll(handle(1))
    with pytest.raises(RunnerRefused):
        await runner.poll("no-such-job")
    found = await runner.poll_many([handle(1), "no-such-job"])
    assert [type(status) for status in found.values()] == [RunnerRefused, RunnerUnavailable]
    await runner.close()


async def test_a_library_that_is_missing_is_named(
    api: Superfacility, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sfapi_client", None)
    runner = SfapiRunner(Site(configured(api)))
    with unavailable("not set up", operators=r"pip install 'collidium\[sfapi\]'"):
        await runner.submit(job())


@pytest.mark.parametrize(
    ("content", "mode", "data"),
    [
        ("no key", 0o600, "has no private key"),
        ("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", 0o600, "has no private key"),
        (None, 0o644, "others may read it"),
    ],
)
def test_an_invalid_key_is_reported_without_its_content(
    content: str | None, mode: int, data: str, api: Superfacility
) -> None:
    if content is not None:
        api.key_file.write_text(content)
    api.key_file.chmod(mode)
    with pytest.raises(ConfigurationError, match=f"PLATFORM_SFAPI_KEY_FILE: .*{data}") as caught:
        collidium_runners(configured(api))
    assert "AAAA" not in caught.value.detail


async def test_a_key_file_may_begin_with_the_clients_id(api: Superfacility, runner: Runner) -> None:
    """As NERSC's own tools write it."""
    api.key_file.write_text(f"{api.client_id}\n{api.key_file.read_text()}")
    assert await runner.find("r1") is None


async def test_the_key_of_another_client_gets_no_token(api: Superfacility, runner: Runner) -> None:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    api.key_file.write_bytes(pem)
    with pytest.raises(RunnerUnavailable, match="gave no access token: invalid_client"):
        await runner.find("r1")


async def test_a_damaged_key_gets_no_token(api: Superfacility, runner: Runner) -> None:
    lines = api.key_file.read_text().splitlines()
    api.key_file.write_text("\n".join([lines[0], "AAAA", lines[-1]]))
    with pytest.raises(RunnerUnavailable, match="gave no access token"):
        await runner.find("r1")
