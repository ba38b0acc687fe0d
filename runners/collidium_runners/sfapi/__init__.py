"""The runner ``sfapi``: array jobs on Perlmutter through NERSC's Superfacility API.

Needs ``pip install 'collidium[sfapi]'``, a Superfacility API client (created in Iris, with its private key in
``PLATFORM_SFAPI_KEY_FILE``) and a directory on the machine's file system. Jobs are named and found by
``collidium-<request_id>``.
"""

from __future__ import annotations

from collidium.contracts.runner import Runner
from collidium.errors import ConfigurationError
from collidium.hookspecs import hookimpl
from collidium.settings import Settings
from collidium_runners.sfapi.runner import SfapiRunner, Site


@hookimpl
def collidium_runners(settings: Settings) -> list[Runner]:
    """The runner; raises ConfigurationError if it was chosen and lacks something."""
    site = Site(settings)
    if settings.runner_name == SfapiRunner.name and (problems := site.problems()):
        raise ConfigurationError("; ".join(problems))
    return [SfapiRunner(site)]
