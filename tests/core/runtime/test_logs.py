"""Log lines: what a client or a plugin writes never passes for a line of the log."""

from __future__ import annotations

import json
import logging

import pytest

from collidium.runtime import logs

FORGED = "GET /x\n2026-01-01 INFO forged [-] all is well\x1b[2K\u2028\x85\r"


def record(message: str, error: BaseException | None = None) -> logging.LogRecord:
    info = (type(error), error, error.__traceback__) if error else None
    made = logging.LogRecord("collidium.access", logging.INFO, __file__, 1, "%s", (message,), info)
    made.http_request_id = "r1"
    return made


def test_a_text_line_is_one_line() -> None:
    line = logs.TextFormatter("%(levelname)s %(message)s").format(record(FORGED))
    assert line == r"INFO GET /x\x0a2026-01-01 INFO forged [-] all is well\x1b[2K\u2028\x85\x0d"


def test_a_traceback_keeps_its_lines_and_forges_none() -> None:
    with pytest.raises(ValueError, match="forged") as caught:
        raise ValueError(FORGED)
    first, *rest = logs.TextFormatter("%(message)s").format(record("failed", caught.value)).split("\n")
    assert first == "failed"
    assert len(rest) > 2
    assert all(line.startswith("  ") for line in rest)
    assert "\x1b" not in "".join(rest)


def test_a_json_line_is_one_line_and_keeps_what_was_said() -> None:
    line = logs.JsonFormatter().format(record(FORGED))
    assert len(line.splitlines()) == 1
    assert json.loads(line)["message"] == FORGED


def test_a_line_that_cannot_be_made_is_logged_all_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise SystemExit

    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    try:
        logs.configure("info", "text")
        logging.getLogger("plugin").warning("storage: %s", Mute())
    finally:
        logging.basicConfig(handlers=before, level=level, force=True)
    line, *more = capsys.readouterr().err.splitlines()
    assert line.endswith("storage: %s (its arguments cannot be formatted)")
    assert not more
