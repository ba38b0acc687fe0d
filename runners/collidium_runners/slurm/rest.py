"""The backend that uses Slurm's REST API, slurmrestd, with a JSON web token.

Written for v0.0.38 (Slurm 22.05), with which it is tested. Later versions have other formats for the
environment and for exclusive nodes; all documented response formats are accepted.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final

from collidium.contracts.runner import RunnerUnavailable
from collidium.errors import ConfigurationError
from collidium.runtime.http_client import HttpClient, NoResponse
from collidium.runtime.logs import single_line
from collidium_runners.batch.states import submission_error
from collidium_runners.slurm.backend import ReportedTask, SlurmBackend, SlurmSubmission, rest_tasks

#: Maximum number of concurrent calls.
CONNECTIONS: Final = 8
#: Maximum size of a response: hundreds of thousands of jobs, of a few kilobytes each.
LARGEST_ANSWER: Final = 1024**3
#: Slurm's error number for an unknown job.
_UNKNOWN_JOB: Final = 2017


class SlurmError(Exception):
    """Slurm responded with errors. The message is their text."""

    def __init__(self, message: str, numbers: Collection[int]) -> None:
        super().__init__(single_line(message))
        self.numbers = frozenset(numbers)


class RestBackend(SlurmBackend):
    """Calls ``<url>/slurm/<version>/…`` as ``user``."""

    def __init__(self, url: str, version: str, user: str, token_file: Path, timeout_seconds: float) -> None:
        self._base = f"{url}/slurm/{version}"
        self._version = int(version.rpartition(".")[2])
        self._user = user
        self._token_file = token_file
        self._http = HttpClient(timeout_seconds, CONNECTIONS)

    async def submit(self, submission: SlurmSubmission) -> int:
        body = {"script": submission.script, "job": self._job(submission)}
        try:
            document = await self._call("POST", "job/submit", body)
        except SlurmError as error:
            raise submission_error(str(error)) from error
        job_id = document.get("job_id")
        if not isinstance(job_id, int) or job_id <= 0:
            raise RunnerUnavailable("slurmrestd gave no job id")
        return job_id

    async def find_jobs(self, name: str) -> list[int]:
        return sorted({task.job_id for task in await self._tasks("jobs") if task.job_name == name})

    async def tasks(self, job_ids: Collection[int]) -> list[ReportedTask]:
        wanted = frozenset(job_ids)
        path = "jobs" if len(wanted) > 1 else f"job/{min(wanted)}"
        return [task for task in await self._tasks(path) if task.job_id in wanted]

    async def accounted(self, job_ids: Collection[int]) -> list[ReportedTask]:
        """Return nothing: accounting has another interface, which may not be enabled."""
        return []

    async def cancel(self, job_id: int) -> None:
        try:
            await self._call("DELETE", f"job/{job_id}")
        except SlurmError as error:
            raise RunnerUnavailable("slurmrestd failed") from error

    async def close(self) -> None:
        await self._http.close()

    def _job(self, submission: SlurmSubmission) -> dict[str, object]:
        allocation = submission.allocation
        environment = {"PATH": os.environ.get("PATH", os.defpath)}
        named = {
            "partition": allocation.partition,
            "account": allocation.account,
            "qos": allocation.qos,
            "constraints": allocation.constraint,
        }
        alone = {"exclusive": "exclusive"} if self._version <= 38 else {"shared": ["none"]}
        return {
            "name": submission.name,
            "array": f"0-{submission.parts - 1}",
            "time_limit": submission.minutes,
            "tasks": 1,
            "standard_output": "/dev/null",
            "current_working_directory": str(submission.directory),
            "environment": environment
            if self._version <= 38
            else [f"{name}={value}" for name, value in environment.items()],
            **{option: value for option, value in named.items() if value},
            **({"cpus_per_task": allocation.cpus} if allocation.cpus else alone),
        }

    async def _tasks(self, path: str) -> list[ReportedTask]:
        try:
            document = await self._call("GET", path)
        except SlurmError as error:
            if _UNKNOWN_JOB in error.numbers:
                return []
            raise RunnerUnavailable("slurmrestd failed") from error
        jobs = document.get("jobs")
        if not isinstance(jobs, list):
            raise RunnerUnavailable("slurmrestd gave no list of jobs")
        # In a thread, as there may be hundreds of thousands.
        return await asyncio.to_thread(lambda: list(rest_tasks(jobs, time.time())))

    async def _call(self, method: str, path: str, body: object = None) -> Mapping[str, Any]:
        """Return the document of the response. Raises SlurmError and RunnerUnavailable."""
        token = await asyncio.to_thread(_token, self._token_file)
        headers = {"X-SLURM-USER-NAME": self._user, "X-SLURM-USER-TOKEN": token}
        try:
            response = await self._http.call(
                method, f"{self._base}/{path}", LARGEST_ANSWER, headers=headers, json=body
            )
        except NoResponse as error:
            raise RunnerUnavailable(f"slurmrestd {error}") from None
        if response.status_code in {401, 403}:
            raise RunnerUnavailable("slurmrestd rejects the token")
        return await asyncio.to_thread(_document, response.status_code, response.content)


def _document(status: int, content: bytes) -> Mapping[str, Any]:
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise RunnerUnavailable(f"slurmrestd answered {status} with an invalid response")
    if status >= 400:
        listed = document.get("errors")
        errors = [error for error in listed if isinstance(error, dict)] if isinstance(listed, list) else []
        messages = {str(error.get("error") or error.get("description")) for error in errors}
        numbers = [error.get("error_number", error.get("error_code")) for error in errors]
        raise SlurmError(
            "; ".join(sorted(messages)) or f"answered {status}",
            [number for number in numbers if isinstance(number, int)],
        )
    return document


_TOKEN: Final = re.compile(r"[A-Za-z0-9_.=-]{1,8192}", re.ASCII)


def _token(file: Path) -> str:
    """Read the token, alone or as ``SLURM_JWT=<token>``, which ``scontrol token`` prints.

    Raises RunnerUnavailable.
    """
    try:
        token = file.read_text().strip().removeprefix("SLURM_JWT=")
        if not _TOKEN.fullmatch(token):
            raise ValueError
    except (OSError, ValueError) as error:
        # Not the message of a decoding error, which contains content of the file.
        why = error.strerror if isinstance(error, OSError) else "it has no token"
        unread = ConfigurationError(f"PLATFORM_SLURM_TOKEN_FILE cannot be read: {why}")
        raise RunnerUnavailable("the platform has no token for the batch system") from unread
    return token
