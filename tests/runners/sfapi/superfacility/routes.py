"""What the API answers to each call."""

from __future__ import annotations

import json
import random
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qs, unquote

from tests.runners.sfapi.superfacility import rows
from tests.runners.sfapi.superfacility.batch import BatchSystem, Job, NotSubmitted
from tests.runners.sfapi.superfacility.files import Document, Files

MACHINE: Final = "perlmutter"


@dataclass(frozen=True, slots=True)
class Call:
    """A call as it arrived."""

    method: str
    #: Below the API's address, without the query, decoded.
    path: str
    query: Mapping[str, list[str]]
    content_type: str
    body: bytes

    @property
    def form(self) -> dict[str, str]:
        return {name: values[-1] for name, values in parse_qs(self.body.decode(errors="replace")).items()}


class Routes:
    """The calls that need a token, by the start of their path."""

    def __init__(self, batch: BatchSystem, files: Files) -> None:
        self.batch = batch
        self.files = files
        #: How many of the next submissions become two jobs, as when the answer to the first was lost.
        self.twice = 0
        #: How often a task is asked for before it has ended.
        self.task_asks = 0
        self.shuffled = False
        self._tasks: dict[str, tuple[Document, int]] = {}
        self._lock = threading.Lock()
        self._table: dict[tuple[str, str], Callable[[Call, str], Document | None]] = {
            ("POST", f"/compute/jobs/{MACHINE}"): self._submit,
            ("GET", f"/compute/jobs/{MACHINE}"): self._jobs,
            ("DELETE", f"/compute/jobs/{MACHINE}/"): self._cancel,
            ("GET", "/tasks/"): self._task,
            ("GET", f"/utilities/ls/{MACHINE}/"): lambda call, rest: files.ls(rest),
            ("GET", f"/utilities/download/{MACHINE}/"): self._download,
            ("PUT", f"/utilities/upload/{MACHINE}/"): self._upload,
            ("POST", f"/utilities/command/{MACHINE}"): self._command,
            ("GET", "/account/projects"): lambda call, rest: self._projects(),
            ("GET", "/account/"): lambda call, rest: {"uid": 4711, "name": "tester"},
        }

    def answer(self, call: Call) -> Any:
        """The JSON to answer with; None: there is no such thing."""
        for (method, start), respond in self._table.items():
            whole = call.path == start or (start.endswith("/") and call.path.startswith(start))
            if method == call.method and whole:
                return respond(call, call.path.removeprefix(start))
        return None

    # -- jobs -----------------------------------------------------------------------------------------

    def _submit(self, call: Call, rest: str) -> Document:
        form = call.form
        script = form.get("job", "")
        if form.get("isPath", "").lower() == "true":
            script = self.files.download(script, binary=False).get("file") or ""
        try:
            job = self.batch.submit(script)
            if self.twice:
                self.twice -= 1
                job = self.batch.submit(script)
        except NotSubmitted as refusal:
            return self._begun({"status": "error", "jobid": None, "error": str(refusal)})
        return self._begun({"status": "ok", "jobid": str(job.id), "error": None})

    def _jobs(self, call: Call, rest: str) -> Document:
        accounting = call.query.get("sacct", ["false"])[-1].lower() == "true"
        with self.batch.lock:
            wanted = self._matching(dict(item.split("=", 1) for item in call.query.get("kwargs", [])))
            output = rows.sacct(wanted) if accounting else rows.squeue(wanted)
        if self.shuffled:
            random.shuffle(output)
        return {"status": "OK", "output": output, "error": None}

    def _matching(self, kwargs: dict[str, str]) -> list[Job]:
        jobs = list(self.batch.jobs.values())
        if "jobid" in kwargs:
            ids = [int(text) for text in kwargs["jobid"].split(",") if text.isdecimal()]
            jobs = [self.batch.jobs[number] for number in ids if number in self.batch.jobs]
        if "name" in kwargs:
            names = kwargs["name"].split(",")
            jobs = [job for job in jobs if job.name in names]
        return jobs

    def _cancel(self, call: Call, rest: str) -> Document:
        job = self.batch.jobs.get(int(rest)) if rest.isdecimal() else None
        if job is not None:
            self.batch.cancel(job)
            return self._begun({"status": "ok", "output": "", "error": None})
        return self._begun({"status": "error", "output": "", "error": f"Invalid job id {rest}"})

    # -- tasks ----------------------------------------------------------------------------------------

    def _begun(self, result: Document) -> Document:
        task = uuid.uuid4().hex
        with self._lock:
            self._tasks[task] = (result, self.task_asks)
        return {"task_id": task, "status": "OK", "error": None}

    def _task(self, call: Call, rest: str) -> Document | None:
        with self._lock:
            if rest not in self._tasks:
                return None
            result, asks = self._tasks[rest]
            if asks > 0:
                self._tasks[rest] = (result, asks - 1)
                return {"id": rest, "status": "new", "result": None}
        return {"id": rest, "status": "completed", "result": json.dumps(result)}

    # -- the machine ----------------------------------------------------------------------------------

    def _download(self, call: Call, rest: str) -> Document:
        return self.files.download(rest, call.query.get("binary", ["false"])[-1].lower() == "true")

    def _upload(self, call: Call, rest: str) -> Document:
        return self.files.upload(rest, call.content_type, call.body)

    def _command(self, call: Call, rest: str) -> Document:
        return self._begun(self.files.command(call.form.get("executable", "")))

    def _projects(self) -> Any:
        return [
            {"id": number, "description": "", "repo_name": name, "hours_given": 1000.0, "hours_used": 0.0}
            for number, name in enumerate(sorted(self.batch.accounts))
        ]


def status() -> Document:
    """How the machine is: returned without a token."""
    return {
        "name": MACHINE,
        "full_name": "Perlmutter",
        "description": "System is active",
        "system_type": "compute",
        "notes": [],
        "status": "active",
        "updated_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def decoded(target: str) -> tuple[str, dict[str, list[str]]]:
    """Path and query of a request's target; slashes stay as they are."""
    path, _, query = target.partition("?")
    return unquote(path), parse_qs(query)
