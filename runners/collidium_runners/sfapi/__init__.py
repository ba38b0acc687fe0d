"""The runner on NERSC's Superfacility API: array jobs on Perlmutter, driven from outside by HTTP.

Needs ``pip install 'collidium[sfapi]'``, a Superfacility API client (made in Iris, with its private key in
``PLATFORM_SFAPI_KEY_FILE``) and a directory on the machine's file system. Every job is named
``collidium-<request_id>``, by which it is found again.
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
