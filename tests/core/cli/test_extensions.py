"""Commands of plugins: known to the help without an import, loaded when used, isolated when broken."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.core.cli.conftest import RunCommand
from tests.distributions import install

COMMAND = """
import click
from collidium.hookspecs import hookimpl

@click.command()
def {name}():
    "Says something."
    click.echo("hello from {name}")

@hookimpl
def collidium_commands():
    return [{name}]
"""
LEAVES_A_MARK = "from pathlib import Path\nPath(__file__).with_suffix('.imported').touch()\n"


def test_third_party_commands_are_imported_when_used(collidium: RunCommand, site: Path) -> None:
    source = LEAVES_A_MARK + COMMAND.format(name="greet")
    install(site, "greetings", {"greetings": source}, commands={"greet": "greetings"})
    install(site, "other", {"other": LEAVES_A_MARK})
    assert "greet From greetings." in " ".join(collidium("--help").stdout.split())
    assert not (site / "greetings.imported").exists()
    assert collidium("greet").stdout == "hello from greet\n"
    assert (site / "greetings.imported").exists()
    assert not (site / "other.imported").exists()


def test_an_undeclared_command_works(collidium: RunCommand, site: Path) -> None:
    install(site, "greetings", {"greetings": COMMAND.format(name="greet")})
    assert "greet" not in collidium("--help").stdout
    assert collidium("greet").stdout == "hello from greet\n"


def test_no_plugin_takes_a_command_of_the_platform(collidium: RunCommand, site: Path) -> None:
    source = LEAVES_A_MARK + COMMAND.format(name="me")
    install(site, "greedy", {"greedy": source}, commands={"me": "greedy"})
    assert collidium("me", "--help").stdout.startswith("Usage: collidium me")
    assert not (site / "greedy.imported").exists()


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("raise RuntimeError('out of order')", "RuntimeError: out of order"),
        (
            "from collidium.hookspecs import hookimpl\n@hookimpl\ndef collidium_commands():\n    1 / 0\n",
            "ZeroDivisionError: division by zero",
        ),
        ("", "it does not provide it"),
    ],
)
def test_a_command_of_a_broken_plugin_reports_the_failure(
    collidium: RunCommand, site: Path, source: str, reason: str
) -> None:
    install(site, "broken", {"broken": source}, commands={"greet": "broken"})
    assert "greet" in collidium("--help").stdout
    done = collidium("greet")
    assert done.returncode == 1
    assert f"Error: command 'greet' comes with plugin 'broken' of broken: {reason}" in done.stderr.replace(
        "collidium_commands: ", ""
    )
    assert collidium("settings", "list").returncode == 0


def test_a_blocked_plugin_says_so(collidium: RunCommand, site: Path) -> None:
    install(site, "greetings", {"greetings": COMMAND.format(name="greet")}, commands={"greet": "greetings"})
    done = collidium("greet", PLATFORM_PLUGINS_BLOCKED="greetings")
    assert done.returncode == 1
    assert "it is blocked" in done.stderr


def test_unknown_command_names_broken_plugins(collidium: RunCommand, site: Path) -> None:
    install(site, "broken", {"broken": "raise RuntimeError('out of order')"})
    done = collidium("greet")
    assert done.returncode == 2
    assert "Warning: plugin 'broken' of broken: RuntimeError: out of order" in done.stderr
    assert "No such command 'greet'" in done.stderr
    assert "Traceback" not in done.stderr
