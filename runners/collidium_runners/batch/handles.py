"""What names a job: enough to follow, cancel and collect it from any process."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Self

from collidium.contracts.runner import RunnerRefused
from collidium_runners.pipeline.naming import REQUEST_ID

_HANDLE: Final = re.compile(rf"([1-9]\d{{0,17}})\.([1-9]\d{{0,5}})\.({REQUEST_ID.pattern})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Handle:
    """An array job: its id in the batch system, its parts, and the request that it is for."""

    job_id: int
    parts: int
    request_id: str

    def __str__(self) -> str:
        return f"{self.job_id}.{self.parts}.{self.request_id}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read it again; raises RunnerRefused for what this runner never gave out."""
        match = _HANDLE.fullmatch(text)
        if match is None:
            raise RunnerRefused(f"there is no job {text[:200]!r}")
        return cls(int(match[1]), int(match[2]), match[3])
