"""The ``collidium`` command. Each subcommand is imported when it is used."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from collidium.cli.failures import show_error, show_os_error
from collidium.cli.root import CommandSession, collidium
from collidium.errors import CollidiumError

INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command and exit: 0 done, 1 failed, 2 usage, 3 rejected by the server, 4 unreachable."""
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command, show its errors, and return the exit code."""
    session, output = CommandSession(), sys.stdout
    # Commands show a broken plugin as one line; only servers log the traceback.
    logging.getLogger("collidium.plugins").setLevel(logging.CRITICAL)
    try:
        code = collidium.main(arguments, prog_name="collidium", standalone_mode=False, obj=session)
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted.", err=True)
        return INTERRUPTED
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except CollidiumError as error:
        show_error(error, as_json=session.as_json, check=session.check)
        return error.exit_code
    except SystemExit:
        if sys.stdout is output:
            raise
        # Click replaces standard output when its reader closed the pipe, as `head` does.
        return 0
    except OSError as error:
        show_os_error(error, as_json=session.as_json)
        return 1
    return code if isinstance(code, int) else 0
