"""Settings of the Slurm runner, and the folder that it makes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from collidium import settings
from collidium.errors import ConfigurationError
from collidium_runners.slurm import SlurmRunner, collidium_runners
from collidium_runners.slurm.folder import RequestFolder


def test_it_needs_no_settings_until_it_is_used(tmp_path: Path) -> None:
    (runner,) = collidium_runners(settings.load(data_dir=tmp_path))
    assert isinstance(runner, SlurmRunner)
    assert runner.name == "slurm"
    assert not (tmp_path / "slurm").exists()


@pytest.mark.parametrize("command", ["simulate {user} {output}", "simulate", "simulate '{output}"])
def test_a_command_that_cannot_be_filled_in_is_refused_at_start(tmp_path: Path, command: str) -> None:
    with pytest.raises(ConfigurationError, match="PLATFORM_PIPELINE_COMMAND"):
        collidium_runners(settings.load(data_dir=tmp_path, pipeline_command=command))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("slurm_account", "a\n#SBATCH --uid=0"),
        ("slurm_partition", "a b"),
        ("slurm_qos", "$(id)"),
        ("slurm_constraint", "'"),
        ("slurm_url", "ftp://example.org"),
        ("slurm_url", "https://user:hunter2@example.org"),
        ("slurm_api", "v1"),
        ("slurm_events_per_part", -1),
        ("slurm_maximum_parts", 0),
    ],
)
def test_values_that_cannot_be_are_refused(name: str, value: object, tmp_path: Path) -> None:
    chosen = {name: value, "slurm_token_file": tmp_path / "token"}
    with pytest.raises(ConfigurationError, match=f"PLATFORM_{name.upper()}") as error:
        settings.load(**chosen)
    assert "hunter2" not in str(error.value)


def test_the_rest_api_needs_a_token() -> None:
    with pytest.raises(ConfigurationError, match="PLATFORM_SLURM_URL needs PLATFORM_SLURM_TOKEN_FILE"):
        settings.load(slurm_url="http://127.0.0.1:6820")


@pytest.fixture
def _others_may_read() -> Iterator[None]:
    """The umask that most machines have."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.usefixtures("_others_may_read")
def test_the_folder_is_private(tmp_path: Path) -> None:
    folder = RequestFolder(tmp_path / "slurm" / "r1")
    folder.claim_parts(3)
    folder.claim_job(7)
    folder.mark_cancelled()
    made = [tmp_path / "slurm", *(tmp_path / "slurm").rglob("*")]
    assert {path.name for path in made} == {"slurm", "r1", "parts", "job", "cancelled"}
    assert [path for path in made if path.stat().st_mode & 0o077] == []
