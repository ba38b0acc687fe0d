"""How jobs are called where they compute, so that they are found again by their requests."""

from __future__ import annotations

import re
from typing import Final

from collidium.contracts.runner import RunnerRefused

#: Ids of requests that can name files, containers and jobs of a batch system.
REQUEST_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", re.ASCII)


def job_name(request_id: str) -> str:
    """What a request's job is known by; raises RunnerRefused for an id that is not plain."""
    if not REQUEST_ID.fullmatch(request_id):
        raise RunnerRefused(f"{request_id[:200]!r} cannot name a job")
    return f"collidium-{request_id}"
