"""The console's log: a file, because the terminal shows the screen."""

from __future__ import annotations

import logging
import os
from logging.handlers import RotatingFileHandler
from pathlib import Path

logger = logging.getLogger("collidium_tui")


def log_file() -> Path:
    """Return the path of the log."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "collidium" / "console.log"


def log_to_file() -> None:
    """Send the logs of this process to :func:`log_file`, which is created with its first line."""
    file = log_file()
    logging.raiseExceptions = False  # a full disk must not write to the screen
    handler: logging.Handler
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handler = RotatingFileHandler(file, maxBytes=1_000_000, backupCount=1, delay=True, encoding="utf-8")
    except OSError:
        handler = logging.NullHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.captureWarnings(True)


def log_error(error: BaseException) -> str:
    """Log an error with its traceback and return the text to show."""
    logger.error("error in the console", exc_info=error)
    return f"error in the console ({type(error).__name__}); see {log_file()}"
