"""The help: complete, with examples, and without what is slow to import."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module

import click
import pytest
from tests.core.cli.conftest import RunCommand

from collidium import __version__
from collidium.cli.root import COMMANDS, SECTIONS
from collidium.runtime.release import described

HEAVY = {"httpx", "hypercorn", "numpy", "pyarrow", "pydantic", "quart", "rich", "tortoise", "huggingface_hub"}


def walk(path: tuple[str, ...], command: click.Command) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        for name, subcommand in command.commands.items():
            yield from walk((*path, name), subcommand)


def all_commands() -> dict[tuple[str, ...], click.Command]:
    found = {}
    for name, address in COMMANDS.items():
        module, _, attribute = address.partition(":")
        found.update(walk((name,), getattr(import_module(module), attribute)))
    return found


@pytest.mark.parametrize("path", all_commands(), ids=" ".join)
def test_every_command_explains_itself_with_an_example(path: tuple[str, ...]) -> None:
    command = all_commands()[path]
    text = command.get_help(click.Context(command, info_name=" ".join(path)))
    assert command.help
    if not isinstance(command, click.Group):
        assert f"collidium {' '.join(path)}" in text
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{path}: {parameter.name}"


def test_whatever_prints_data_prints_json_too() -> None:
    # What these print is for people, or is not data.
    without = {("serve",), ("worker",), ("login",), ("db", "migrate")}
    for path, command in all_commands().items():
        if not isinstance(command, click.Group) and path not in without:
            assert any("--json" in parameter.opts for parameter in command.params), path


def test_the_help_imports_nothing_heavy() -> None:
    program = (
        "import sys\nfrom collidium.cli import run\nrun(['--help'])\n"
        "print(*(name for name, module in sys.modules.items() if module), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert {name.partition(".")[0] for name in done.stderr.split()}.isdisjoint(HEAVY)


def test_help_separates_user_and_operator_commands(collidium: RunCommand) -> None:
    done = collidium("--help")
    assert done.returncode == 0
    shown, rest = done.stdout, ""
    plugins = ("jets", "tui", "user")
    for title, names in reversed([*SECTIONS.items(), ("Commands of plugins", plugins)]):
        shown, heading, rest = shown.partition(f"{title}:")
        assert heading
        for name in names:
            assert f"\n  {name} " in rest


def test_help_of_challenges_shows_users_commands_apart(collidium: RunCommand) -> None:
    users, _, organisers = collidium("challenge", "--help").stdout.partition("Commands for organisers:")
    for name in ("list", "show", "quota", "export"):
        assert f"\n  {name} " in users.partition("Commands for users:")[2]
    for name in ("new", "close", "members"):
        assert f"\n  {name} " in organisers


def test_a_mistyped_command_suggests_the_right_one(collidium: RunCommand) -> None:
    assert "Did you mean `collidium submit`?" in collidium("sumbit").stderr
    assert "show" in collidium("task", "shwo").stderr.splitlines()[-1]


def test_the_version(collidium: RunCommand) -> None:
    assert collidium("--version").stdout == f"collidium {described()}\n"
    assert re.fullmatch(rf"{re.escape(__version__)}( \(commit [0-9a-f]{{10,}}\))?", described())


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense",),
        ("task", "nonsense"),
        ("submit", "tracking"),
        ("submit", "tracking", "nothing.parquet"),
        ("leaderboard", "tracking", "--limit", "0"),
        ("serve", "--port", "65536"),
        ("truth", "import", "tracking", "--from", "x", "--events", "5:3"),
        ("simulate", "--remote"),
        ("simulate", "--remote", "--preset", "ttbar-quick", "--events", "10"),
        ("simulate", "--remote", "--channel", "ttbar", "--events", "1.5", "--pileup", "0"),
        ("estimate", "--channel", "ttbar"),
        ("estimate", "--preset", "ttbar-quick", "--channel", "ttbar"),
        ("requests", "--state", "lost"),
    ],
    ids=" ".join,
)
def test_wrong_usage_ends_with_2(collidium: RunCommand, arguments: tuple[str, ...]) -> None:
    done = collidium(*arguments)
    assert done.returncode == 2
    assert "Error: " in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
