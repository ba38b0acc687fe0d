"""``collidium user``, and the imports of the plugin."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from collidium.testing.server import run_command
from collidium_plugins.local_hub import accounts
from collidium_plugins.local_hub.store import Store

Environment = dict[str, str]


def user(environment: Environment, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_command(["user", *arguments], environment, Path(environment["HOME"]))


def owner(environment: Environment, token: str) -> str | None:
    store = Store(Path(environment["PLATFORM_DATA_DIR"]) / "hub")
    with store.database.reading() as db:
        account = accounts.owner_of(db, token)
    store.close()
    return account.name if account else None


def test_add_prints_the_token_alone_on_the_last_line(isolated_environment: Environment) -> None:
    done = user(isolated_environment, "add", "alice")
    assert done.returncode == 0, done.stderr
    token = done.stdout.splitlines()[-1]
    assert owner(isolated_environment, token) == "alice"
    as_json = user(isolated_environment, "add", "bob", "--json")
    assert owner(isolated_environment, json.loads(as_json.stdout)["token"]) == "bob"
    listed = json.loads(user(isolated_environment, "list", "--json").stdout)
    assert [account["name"] for account in listed] == ["alice", "bob"]
    shown = user(isolated_environment, "list").stdout
    assert "alice" in shown
    assert "bob" in shown
    assert token not in shown


def test_names_are_unique_and_new_tokens_replace_old_ones(isolated_environment: Environment) -> None:
    first = user(isolated_environment, "add", "alice").stdout.splitlines()[-1]
    for name in ("alice", "ALICE"):
        again = user(isolated_environment, "add", name)
        assert again.returncode == 3
        assert "--new-token" in again.stderr
        assert "Traceback" not in again.stderr
    renewed = user(isolated_environment, "add", "alice", "--new-token")
    assert renewed.returncode == 0, renewed.stderr
    second = renewed.stdout.splitlines()[-1]
    assert owner(isolated_environment, second) == "alice"
    assert owner(isolated_environment, first) is None
    assert user(isolated_environment, "add", "unknown", "--new-token").returncode == 3


@pytest.mark.parametrize(
    "name", ["", "a b", "../x", "-a", "a--b", "x.git", "datasets", "API", "a" * 97, "ü", "a\n"]
)
def test_invalid_account_names_are_rejected(isolated_environment: Environment, name: str) -> None:
    done = user(isolated_environment, "add", "--", name)
    assert done.returncode == 3, done.stderr
    assert done.stdout == ""


def test_importing_the_plugin_imports_nothing_heavy() -> None:
    heavy = {"quart", "huggingface_hub", "httpx", "click", "sqlite3", "yaml", "pydantic"}
    modules = "collidium_plugins.local_hub, collidium_plugins.hub_identity"
    code = f"import sys, {modules}; print({heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
