"""The command in a real terminal: an operator logs in, freezes, and orders are refused until it is open."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.needs import Needs
from tests.tui.terminal import terminal

from collidium.testing.server import COLLIDIUM, ServerProcess, run_command

TUI = [*COLLIDIUM, "tui", "--utc"]


def order(server: ServerProcess, token: str, seed: int) -> subprocess.CompletedProcess[str]:
    environment = server.environment | {"PLATFORM_BACKEND": server.base_url, "HF_TOKEN": token}
    command = ("simulate", "--remote", "--preset", "ttbar-quick", "--seed", str(seed))
    return run_command(command, environment, server.directory)


def test_an_operator_stops_orders_and_lets_them_in_again(
    needs: Needs, backend: ServerProcess, tmp_path: Path
) -> None:
    needs("tmux")
    token = backend.add_user("tessa")
    environment = {
        name: value
        for name, value in backend.environment.items()
        if name not in ("ADMIN_TOKEN", "PLATFORM_DATA_DIR")
    }
    with terminal(tmp_path, environment | {"PLATFORM_BACKEND": backend.base_url}, TUI) as window:
        window.shows("Sign in as operator")
        window.type("wrong")
        window.press("Enter")
        window.shows("The server rejects this secret.")
        window.press(*["BSpace"] * len("wrong"))
        # Textual runs keys of editing after letters that come at once: no person types that fast.
        window.shows_no("•")
        window.type(backend.admin_token)
        window.press("Enter")
        window.shows("connected", "│ open │", "Overview")
        window.press("C-f")
        window.shows("Freeze the platform")
        window.press("Enter")
        window.shows("*** FROZEN ***")
        refused = order(backend, token, 1)
        assert refused.returncode == 3, refused.stderr
        assert "not accepted now" in refused.stderr
        window.press("C-f")
        window.shows("Unfreeze the platform")
        window.type("y")
        window.shows("│ open │")
        assert order(backend, token, 2).returncode == 0
        assert backend.admin_token not in window.text()
        window.press("C-q")
        window.shows("ended with 0")


def test_what_ends_the_console_is_one_line(
    needs: Needs, tmp_path: Path, isolated_environment: dict[str, str]
) -> None:
    needs("tmux")
    with terminal(tmp_path, isolated_environment | {"PLATFORM_BACKEND": "nowhere"}, TUI) as window:
        window.shows("Error: PLATFORM_BACKEND must be an address", "ended with 1")
        assert "Traceback" not in window.text()


def test_without_a_terminal_it_says_what_to_use_instead(
    tmp_path: Path, isolated_environment: dict[str, str]
) -> None:
    done = run_command(["tui"], isolated_environment, tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("Error: the console needs a terminal")
    assert "collidium admin" in done.stderr


def test_frames_are_ascii_where_the_locale_has_no_others(
    needs: Needs, backend: ServerProcess, tmp_path: Path
) -> None:
    needs("tmux")
    environment = backend.environment | {
        "PLATFORM_BACKEND": backend.base_url,
        "ADMIN_TOKEN": backend.admin_token,
        "PYTHONIOENCODING": "ascii",
    }
    with terminal(tmp_path, environment, TUI) as window:
        window.shows("connected", "| open |", "Overview")
        assert "\\u" not in window.text()
        window.press("C-c")
        window.shows("Press ^q to quit.")
        window.press("C-q")
        window.shows("ended with 0")
