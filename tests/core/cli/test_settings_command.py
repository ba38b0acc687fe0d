"""``collidium settings list``."""

from __future__ import annotations

import json
from pathlib import Path

from tests.core.cli.conftest import RunCommand

from collidium.settings import Settings


def test_every_setting_is_there_with_origin_default_and_help(collidium: RunCommand, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("PLATFORM_LOG_LEVEL=debug\n")
    done = collidium("settings", "list", "--json", PLATFORM_PORT="9000")
    listed = {setting["name"]: setting for setting in json.loads(done.stdout)}
    assert len(listed) == len(Settings.model_fields) + 2
    assert all(setting["help"] for setting in listed.values())
    port = listed["PLATFORM_PORT"]
    assert (port["value"], port["origin"], port["default"]) == (9000, "environment", 8000)
    assert (listed["PLATFORM_LOG_LEVEL"]["value"], listed["PLATFORM_LOG_LEVEL"]["origin"]) == (
        "debug",
        ".env",
    )
    assert listed["PLATFORM_WORKERS"]["origin"] == "default"


def test_a_former_name_is_the_origin_of_its_value(collidium: RunCommand, tmp_path: Path) -> None:
    def tag(**variables: str) -> tuple[str, str]:
        done = collidium("settings", "list", "--json", **variables)
        return next(
            (one["value"], one["origin"]) for one in json.loads(done.stdout) if one["name"] == "PLATFORM_TAG"
        )

    assert tag(PLATFORM_PLATFORM_TAG="ours") == ("ours", "environment")
    (tmp_path / ".env").write_text("PLATFORM_PLATFORM_TAG=filed\n")
    assert tag() == ("filed", ".env")


def test_no_secret_is_shown(collidium: RunCommand) -> None:
    secrets = {
        "ADMIN_TOKEN": "hush-admin",
        "HF_TOKEN": "hush-hub",
        "PLATFORM_DATABASE_URL": "postgres://me:hush%40db@db.example/x?password=hush-again",
        "PLATFORM_BACKEND": "https://hush_token@collidium.example",
    }
    for arguments in (("--json",), ()):
        done = collidium("settings", "list", *arguments, **secrets)
        assert done.returncode == 0
        assert "hush" not in done.stdout + done.stderr
        assert "postgres://me:" in done.stdout


def test_the_list_has_readable_sizes_and_is_not_cut(collidium: RunCommand) -> None:
    listed = collidium("settings", "list", PLATFORM_MAX_BODY_BYTES="1500").stdout
    for part in ("8 GiB", "1500 bytes", "PLATFORM_IDENTITY_CACHE_SECONDS"):
        assert part in listed
    assert "…" not in listed
    assert all(line == line.rstrip() for line in listed.splitlines())
    assert max(map(len, listed.splitlines())) <= 100
