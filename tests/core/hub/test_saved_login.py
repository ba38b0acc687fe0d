"""The saved login."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from collidium.client import forget_token, login_file, save_token
from collidium.errors import ConfigurationError
from collidium.hub.sources import saved_token

HERE = "http://127.0.0.1:8000"


@pytest.fixture(autouse=True)
def config_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def test_one_token_for_each_server() -> None:
    save_token(HERE, "one")
    save_token("https://there", "two")
    save_token(HERE, "three")
    assert (saved_token(HERE), saved_token("https://there"), saved_token("http://x")) == (
        "three",
        "two",
        None,
    )


def test_only_the_owner_may_read_it(tmp_path: Path) -> None:
    path = save_token(HERE, "one")
    path.chmod(0o644)
    assert save_token(HERE, "two") == login_file() == path
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [file.name for file in path.parent.iterdir()] == ["login.json"]


def test_forgetting() -> None:
    save_token(HERE, "one")
    assert forget_token(HERE)
    assert not forget_token(HERE)
    assert saved_token(HERE) is None


@pytest.mark.parametrize("content", ["{", "[]", '"x"', "\0"])
def test_a_broken_file_is_named(content: str) -> None:
    save_token(HERE, "one").write_text(content)
    with pytest.raises(ConfigurationError, match=r"login\.json cannot be read; delete it"):
        saved_token(HERE)
