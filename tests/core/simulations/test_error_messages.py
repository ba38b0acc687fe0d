"""Internal errors are reported in full to operators; owners learn only that there was one."""

from __future__ import annotations

import pytest
from tests.core.simulations.conftest import OpenPlatform, ended, order, sign_up
from tests.core.simulations.scripted import Scripted

from collidium import simulations
from collidium.contracts.runner import Job, RunnerRefused, RunnerUnavailable
from collidium.contracts.storage import StorageUnavailable
from collidium.errors import ConfigurationError

SECRET = "PLATFORM_SLURM_DIRECTORY: /srv/inside on node7"


def caused(error: Exception) -> Exception:
    """The error, with what is not for owners as its cause."""
    error.__cause__ = OSError(SECRET)
    return error


class Mute(RunnerRefused):
    def __str__(self) -> str:
        raise SystemExit


ERRORS = [
    (ConfigurationError(SECRET), "the platform is not configured for this; its operators see why"),
    (StorageUnavailable(SECRET), "the platform's storage does not respond"),
    (caused(RunnerUnavailable("the shared folder is not there")), "the shared folder is not there"),
    (caused(RunnerRefused("no node is so large")), "no node is so large"),
    (caused(Mute()), "(it has no readable message)"),
]


@pytest.mark.parametrize(("error", "sentence"), ERRORS)
async def test_of_a_step_that_fails(
    open_platform: OpenPlatform, caplog: pytest.LogCaptureFixture, error: Exception, sentence: str
) -> None:
    def fail(job: Job) -> None:
        raise error

    runner = Scripted()
    runner.submitting = fail
    opened = open_platform(runner, submit_deadline_seconds=0.2)
    async with opened as platform, simulations.following(platform):
        request = await ended(await order(platform, await sign_up("alice")))
    assert sentence in (request.reason or "")
    assert SECRET not in repr(request)
    assert f"request {request.request_id}: step submit: " in caplog.text
    assert SECRET in caplog.text


@pytest.mark.parametrize(("error", "sentence"), [ERRORS[0], *ERRORS[2:]])
async def test_of_a_job_that_cannot_be_looked_at(
    open_platform: OpenPlatform, caplog: pytest.LogCaptureFixture, error: Exception, sentence: str
) -> None:
    runner = Scripted(error)
    opened = open_platform(runner, queued_deadline_seconds=0.2)
    async with opened as platform, simulations.following(platform):
        request = await ended(await order(platform, await sign_up("alice")))
    assert sentence in (request.reason or "")
    assert SECRET not in repr(request)
    assert "runner scripted: " in caplog.text
    assert SECRET in caplog.text
