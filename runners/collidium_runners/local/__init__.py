"""The runner ``local``: runs the pipeline as processes on the server's machine, without containers (Linux).

Each job runs in a session of its own under a supervising process, the shepherd, which may outlive the process
that started it. The state of jobs is below ``local-jobs`` in the data directory, so that any process of this
machine can follow them. All processes that follow requests must run on this machine as the same user.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from collidium.hookspecs import hookimpl

if TYPE_CHECKING:
    from collidium.contracts.runner import Runner
    from collidium.settings import Settings


@hookimpl
def collidium_runners(settings: Settings) -> list[Runner]:
    """The runner local."""
    # Imported here, as each shepherd imports this package and needs none of it.
    from collidium_runners.local.engine import local_runner

    return [local_runner(settings)]
