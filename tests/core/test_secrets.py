"""Users' secrets are encrypted with the platform's keys."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from collidium import settings
from collidium.errors import ConfigurationError
from collidium.secrets import FILE, LostKey, Secrets, open_secrets

KEPT = "a token of the hub"


def with_key(key: str, data_dir: Path) -> Secrets:
    return open_secrets(settings.load(data_dir=data_dir, secret_key=key))


def test_kept_secrets_are_encrypted_and_readable(tmp_path: Path) -> None:
    secrets = open_secrets(settings.load(data_dir=tmp_path))
    first, second = secrets.encrypt(KEPT), secrets.encrypt(KEPT)
    assert first != second, "equal secrets must not be seen to be equal"
    assert KEPT not in first
    assert first.isascii()
    assert secrets.decrypt(first) == secrets.decrypt(second) == KEPT
    assert secrets.decrypt(secrets.encrypt("")) == ""


def test_the_key_of_a_fresh_machine_is_for_its_owner_and_stays(tmp_path: Path) -> None:
    fresh = settings.load(data_dir=tmp_path / "data")
    value = open_secrets(fresh).encrypt(KEPT)
    file = tmp_path / "data" / FILE
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert open_secrets(fresh).decrypt(value) == KEPT
    assert sorted(path.name for path in file.parent.iterdir()) == [FILE]


def test_processes_that_start_at_once_share_one_key(tmp_path: Path) -> None:
    program = """if True:
        import sys
        from collidium import settings
        from collidium.secrets import open_secrets
        print("ready", flush=True)
        sys.stdin.readline()
        print(open_secrets(settings.load(data_dir=sys.argv[1])).encrypt("secret"))
    """
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    values = [process.communicate(timeout=60)[0].strip() for process in processes]
    secrets = open_secrets(settings.load(data_dir=tmp_path))
    assert [secrets.decrypt(value) for value in values] == ["secret"] * 4


@pytest.mark.parametrize(
    "key",
    ["correct horse battery staple", "ключ", Fernet.generate_key().decode()],
    ids=["sentence", "no ASCII", "made key"],
)
def test_any_text_is_a_key(key: str, tmp_path: Path) -> None:
    value = with_key(key, tmp_path).encrypt(KEPT)
    assert with_key(f" {key} ", tmp_path).decrypt(value) == KEPT
    assert not (tmp_path / FILE).exists()


def test_a_fernet_key_is_used_unchanged(tmp_path: Path) -> None:
    key = Fernet.generate_key()
    assert Fernet(key).decrypt(with_key(key.decode(), tmp_path).encrypt(KEPT)).decode() == KEPT


def test_keys_are_rotated(tmp_path: Path) -> None:
    old = with_key("old", tmp_path)
    both = with_key("new, old", tmp_path)
    new = with_key("new", tmp_path)
    assert both.decrypt(old.encrypt(KEPT)) == KEPT
    assert new.decrypt(both.encrypt(KEPT)) == KEPT, "the first key encrypts"
    with pytest.raises(LostKey, match="PLATFORM_SECRET_KEY") as caught:
        new.decrypt(old.encrypt(KEPT))
    assert caught.value.__cause__ is None
    assert KEPT not in str(caught.value)


@pytest.mark.parametrize("value", ["", "plain text", "gAAAAA", "ключ"])
def test_decrypting_plain_text_is_an_error(value: str, tmp_path: Path) -> None:
    with pytest.raises(LostKey):
        with_key("key", tmp_path).decrypt(value)


@pytest.mark.parametrize("key", ["", " ", ",", "one,,two", "one,"])
def test_a_key_file_without_keys_is_reported(key: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="PLATFORM_SECRET_KEY: a key is missing"):
        with_key(key, tmp_path)


def test_an_empty_key_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("")
    with pytest.raises(ConfigurationError, match=FILE):
        open_secrets(settings.load(data_dir=tmp_path))


def test_keys_are_not_in_the_repr(tmp_path: Path) -> None:
    secrets = with_key("correct horse", tmp_path)
    assert "correct horse" not in f"{secrets!r} {secrets}"
    assert not hasattr(secrets, "__dict__")
