"""Errors as people and programs see them."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from tests.core.cli.conftest import RunCommand
from tests.core.client.servers import hanging_up, read_headers, read_message, response, serving

from collidium import errors
from collidium.cli.failures import lines, show_error
from collidium.cli.options import completing
from collidium.cli.output import show_message
from collidium.cli.progress import progress_bar
from collidium.cli.root import CommandSession
from collidium.testing.databases import required_settings

PROBLEMS: list[dict[str, Any]] = [
    {
        "code": "negative-id",
        "detail": "track ids are -1 or more",
        "column": "track_id",
        "event_id": 4,
        "count": 12,
        "examples": [{"hit_id": 3, "track_id": -7}],
    },
    {"detail": "Input should be greater than 0", "field": "limit"},
]


def test_problems_are_shown_with_place_and_examples() -> None:
    assert list(lines(errors.InvalidInput("the predictions have 2 problems", errors=PROBLEMS))) == [
        "Error: the predictions have 2 problems",
        "  - column track_id, event 4: track ids are -1 or more (12 rows)",
        "      for example hit_id=3, track_id=-7",
        "  - limit: Input should be greater than 0",
        "What to do: fix the file; `collidium check TASK FILE` checks it free of charge.",
    ]


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (errors.Conflict("no"), ["Error: no"]),
        (errors.Forbidden("only the captain of Ω can invite"), ["Error: only the captain of Ω can invite"]),
        (errors.ConfigurationError("cannot listen on port 1"), ["Error: cannot listen on port 1"]),
        (
            errors.ConfigurationError("settings: PLATFORM_X: no", errors=[{"detail": "PLATFORM_X: no"}]),
            [
                "Error: settings: PLATFORM_X: no",
                "What to do: correct or unset it; `collidium settings list` then shows every setting.",
            ],
        ),
        (
            errors.InvalidInput(PROBLEMS[0]["detail"], errors=PROBLEMS[:1]),
            [
                "Error: column track_id, event 4: track ids are -1 or more (12 rows)",
                "      for example hit_id=3, track_id=-7",
                "What to do: fix the file; `collidium check TASK FILE` checks it free of charge.",
            ],
        ),
        (
            errors.InvalidInput(
                "predictions: PLATFORM_X: no; PLATFORM_Y: no",
                errors=[{"detail": "PLATFORM_X: no"}, {"detail": "PLATFORM_Y: no"}],
            ),
            ["Error: predictions: 2 problems", "  - PLATFORM_X: no", "  - PLATFORM_Y: no"],
        ),
        (
            errors.InvalidInput(
                "events: 1 or more; pileup: 0 or more",
                errors=[
                    {"field": "events", "detail": "1 or more"},
                    {"field": "pileup", "detail": "0 or more"},
                ],
            ),
            ["Error: 2 problems", "  - events: 1 or more", "  - pileup: 0 or more"],
        ),
        (
            errors.Unauthenticated("no token: run `collidium login`"),
            ["Error: no token: run `collidium login`"],
        ),
        (
            errors.Unauthenticated("no"),
            ["Error: no", "What to do: log in with `collidium login`, or set HF_TOKEN."],
        ),
        (
            errors.Unauthenticated("no", challenge="X-Admin-Token"),
            [
                "Error: no",
                "What to do: set ADMIN_TOKEN to what the file admin-token in the server's data directory "
                "holds.",
            ],
        ),
        (
            errors.TooManyRequests("slowly", retry_after=7),
            ["Error: slowly", "What to do: try again in 7 s."],
        ),
        (
            errors.NotFound("there is no task 'x'; GET /v1/benchmark/tasks lists those there are"),
            [
                "Error: there is no task 'x'; GET /v1/benchmark/tasks lists those there are",
                "What to do: `collidium tasks` lists the tasks of the server.",
            ],
        ),
    ],
)
def test_each_detail_is_shown_once_with_advice(error: errors.CollidiumError, shown: list[str]) -> None:
    assert list(lines(error)) == shown


def test_a_traceback_shows_the_first_problem() -> None:
    assert str(errors.InvalidInput("2 problems", errors=PROBLEMS)) == (
        "2 problems: track_id: track ids are -1 or more (and 1 more in .errors)"
    )
    assert str(errors.InvalidInput("track ids", errors=[{"detail": "track ids"}])) == "track ids"
    assert str(errors.InvalidInput("wrong")) == "wrong"


def test_the_request_id_is_shown() -> None:
    error = errors.CollidiumError("the server failed")
    error.request_id = "abc"
    assert list(lines(error))[-1].endswith("operators: abc.")


def test_what_a_server_says_cannot_drive_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    show_error(errors.InvalidInput("red \x1b[31m\r\nnext", errors=[{"detail": "\x07bell"}]), as_json=False)
    printed = capsys.readouterr().err
    assert printed == "Error: red \N{REPLACEMENT CHARACTER}[31m\nnext\n  - \N{REPLACEMENT CHARACTER}bell\n"


def test_a_message_cannot_drive_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with click.Context(click.Command("ban"), obj=CommandSession()):
        show_message(None, "alice\x1b[31m is banned.")
    assert capsys.readouterr().out == "alice\N{REPLACEMENT CHARACTER}[31m is banned.\n"


def test_a_progress_bars_label_is_no_markup(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with progress_bar("Sending [/x]\x1b]0;title") as progress:
        assert progress is not None
        progress(1, 2)
    assert "Sending [/x]\N{REPLACEMENT CHARACTER}]0;title" in capsys.readouterr().err


def test_shells_complete_plain_words_alone() -> None:
    sent = ["tracking", "tracking;$(reboot)", "tracking\nplain,other", "tracking\x1b[31m", "tracking two"]
    complete = completing(lambda: sent)
    context = click.Context(click.Command("show"))
    assert [item.value for item in complete(context, click.Argument(["task"]), "tr")] == ["tracking"]


def test_for_programs_it_is_a_problem_document(capsys: pytest.CaptureFixture[str]) -> None:
    show_error(errors.InvalidInput("wrong", errors=PROBLEMS), as_json=True)
    assert json.loads(capsys.readouterr().err) == {
        "type": "about:blank",
        "title": "Invalid input",
        "status": 422,
        "detail": "wrong",
        "errors": PROBLEMS,
    }


# -- exit codes, from the command itself ------------------------------------------------------------------


def test_an_unreachable_server_ends_with_4(collidium: RunCommand) -> None:
    done = collidium("leaderboard", "tracking", PLATFORM_BACKEND="http://127.0.0.1:1")
    assert done.returncode == 4
    assert done.stderr.startswith("Error: cannot reach http://127.0.0.1:1")
    assert "Traceback" not in done.stderr


def test_a_lost_response_names_the_key_to_repeat_with(collidium: RunCommand) -> None:
    grant = ("admin", "grant", "alice", "1", "--note", "a talk")
    done_body = b'{"hub_username": "alice", "new_balance": 11, "transaction_id": 1}'
    received: list[str] = []

    def done(connection: socket.socket) -> None:
        received.append(read_message(connection).decode().lower())
        connection.sendall(response("200 OK", done_body, "application/json"))

    with serving(hanging_up, hanging_up, hanging_up, done) as url:
        environment = {"PLATFORM_BACKEND": url, "ADMIN_TOKEN": "secret"}
        lost = collidium(*grant, "--json", **environment)
        assert lost.returncode == 4
        key = json.loads(lost.stderr)["idempotency_key"]
        assert collidium(*grant, "--idempotency-key", key, **environment).stdout == "alice has 11 credits.\n"
    assert f"idempotency-key: {key}" in received[0]


def test_invalid_settings_are_all_reported_and_end_with_1(collidium: RunCommand) -> None:
    done = collidium("task", "list", PLATFORM_PORT="many", PLATFORM_NONSENSE="1")
    assert done.returncode == 1
    assert "PLATFORM_PORT: " in done.stderr
    assert "PLATFORM_NONSENSE: no such setting" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_setting_of_the_data_directory_is_named(collidium: RunCommand, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = collidium("user", "list", PLATFORM_DATA_DIR=str(tmp_path / "file" / "below"))
    assert done.returncode == 1
    assert done.stderr.startswith(f"Error: PLATFORM_DATA_DIR: {tmp_path / 'file' / 'below'} cannot be used")


def test_a_database_out_of_reach_is_not_called_empty(collidium: RunCommand) -> None:
    url = "postgres://me@127.0.0.1:1/x"
    done = collidium("task", "list", PLATFORM_DATABASE_URL=url, **required_settings(url))
    assert done.returncode == 1
    assert done.stderr.startswith("Error: the database cannot be reached")
    assert "What to do" not in done.stderr


def test_clients_refuse_settings_that_do_not_exist(collidium: RunCommand) -> None:
    done = collidium("tasks", PLATFORM_BACKNED="http://127.0.0.1:1")
    assert done.returncode == 1
    assert "PLATFORM_BACKNED: no such setting" in done.stderr


def test_a_login_without_a_terminal_says_what_to_do(collidium: RunCommand) -> None:
    done = collidium("login")
    assert done.returncode == 2
    assert "--token-stdin" in done.stderr


def test_interrupting_ends_with_130(isolated_environment: dict[str, str], tmp_path: Path) -> None:
    asked = tmp_path / "asked"

    def silent(connection: socket.socket) -> None:
        read_headers(connection)
        asked.touch()
        connection.recv(1)

    with serving(silent) as url:
        process = subprocess.Popen(
            [sys.executable, "-m", "collidium", "leaderboard", "tracking"],
            env=isolated_environment | {"PLATFORM_BACKEND": url},
            stderr=subprocess.PIPE,
            text=True,
        )
        while not asked.exists() and process.poll() is None:
            os.sched_yield()
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=20)[1].strip() == "Interrupted."
    assert process.returncode == 130


def test_interrupting_imports_shows_no_traceback(
    isolated_environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "click.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    process = subprocess.run(
        [sys.executable, "-m", "collidium", "tasks"],
        env=isolated_environment | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (process.returncode, process.stderr) == (130, "Interrupted.\n")


def test_a_closed_output_is_no_failure(isolated_environment: dict[str, str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    process = subprocess.run(
        [sys.executable, "-m", "collidium", "settings", "list"],
        env=isolated_environment,
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writing)
    assert (process.returncode, process.stderr) == (0, "")
