"""A real terminal: tmux, which is typed into and read from."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.waiting import eventually


class Terminal:
    """One window of a tmux of its own, with one program in it."""

    def __init__(self, socket: Path, environment: Mapping[str, str]) -> None:
        self._tmux = ["tmux", "-S", str(socket), "-f", "/dev/null"]
        self._environment = dict(environment)

    def start(self, program: Sequence[str], width: int = 80, height: int = 24) -> None:
        size = ["-x", str(width), "-y", str(height)]
        # The window stays when the program has ended, to be read.
        command = f"{shlex.join(program)}; echo ended with $?; read -r _"
        self._run("new-session", "-d", *size, command)

    def type(self, text: str) -> None:
        """Type text as it is."""
        self._run("send-keys", "-l", text)

    def press(self, *keys: str) -> None:
        """Press keys by tmux's names: ``Enter``, ``C-f``."""
        self._run("send-keys", *keys)

    def shows(self, *words: str) -> None:
        """Wait until all of these stand on the screen; fails with the screen as it is instead."""
        try:
            eventually(lambda: all(word in self.text() for word in words))
        except AssertionError:
            raise AssertionError(f"not on the screen: {words}\n{self.text()}") from None

    def shows_no(self, word: str) -> None:
        """Wait until it is gone."""
        eventually(lambda: word not in self.text())

    def text(self) -> str:
        return self._run("capture-pane", "-p")

    def end(self) -> None:
        self._run("kill-server")

    def _run(self, *arguments: str) -> str:
        done = subprocess.run(
            [*self._tmux, *arguments], check=True, stdout=subprocess.PIPE, text=True, env=self._environment
        )
        return done.stdout


@contextmanager
def terminal(directory: Path, environment: Mapping[str, str], program: Sequence[str]) -> Iterator[Terminal]:
    """A terminal of 80 columns and 24 lines with the program running in it."""
    window = Terminal(directory / "tmux", environment | {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8"})
    window.start(program)
    try:
        yield window
    finally:
        window.end()
