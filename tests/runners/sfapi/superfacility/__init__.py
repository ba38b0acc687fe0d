"""A Superfacility API on loopback, for tests of what drives NERSC's batch system.

It speaks the published shapes (tokens for a signed assertion, ``/status``, ``/compute/jobs``, ``/tasks``,
``/utilities``, ``/account``), really runs the scripts that it is given on this machine, and goes wrong on
command::

    with Superfacility(tmp_path) as api:
        settings.load(sfapi_url=api.url, sfapi_token_url=api.token_url, sfapi_client_id=api.client_id,
                      sfapi_key_file=api.key_file, sfapi_directory=str(api.scratch), …)
        api.misbehave(HangUp(), where="/compute/jobs", method="POST", acts=True)
"""

from tests.runners.sfapi.superfacility.faults import Answer, HangUp, Stall, Trickle
from tests.runners.sfapi.superfacility.server import Superfacility

__all__ = ["Answer", "HangUp", "Stall", "Superfacility", "Trickle"]
