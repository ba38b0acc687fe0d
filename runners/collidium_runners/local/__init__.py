"""The runner local: the pipeline as processes of the server's own machine, with nothing to install (Linux).

For a laptop, and for a server without containers. Each job runs in a session of its own under a shepherd,
which outlives the process that started it; what is to be known of jobs lies below ``local-jobs`` in the data
directory, so that any process of this machine follows them. Every process that follows requests must run on
this machine, as the same user.
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
    # Each job's shepherd passes here, and needs none of it.
    from collidium_runners.local.engine import local_runner

    return [local_runner(settings)]
