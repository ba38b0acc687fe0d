"""The server: one thread per connection, on loopback."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, cast

from tests.runners.sfapi.superfacility.batch import BatchSystem, Job
from tests.runners.sfapi.superfacility.faults import Answer, Behaviour, Fault, Faults, HangUp, Trickle
from tests.runners.sfapi.superfacility.files import Files
from tests.runners.sfapi.superfacility.routes import Call, Routes, decoded, status
from tests.runners.sfapi.superfacility.tokens import InvalidClient, Tokens

_API: Final = "/api/v1.2"
_TOKEN: Final = "/c2id/token"


class Superfacility:
    """The API, its token endpoint and a machine behind them; a context manager.

    ``directory`` gets the client's key, the machine's scratch file system and its spooled scripts. At most
    ``slots`` array tasks run at once; tokens live for ``token_seconds``; files larger than
    ``download_limit`` bytes are not downloaded.
    """

    client_id = "abcdefghijklm"
    account = "m4711"

    def __init__(
        self, directory: Path, *, slots: int = 2, token_seconds: float = 600, download_limit: int = 5_000_000
    ) -> None:
        self.key_file = directory / "sfapi-key.pem"
        self.scratch = directory / "scratch"
        spool = directory / "spool"
        for folder in (directory, self.scratch, spool):
            folder.mkdir(parents=True, exist_ok=True)
        self.tokens = Tokens(self.client_id, self.key_file, token_seconds)
        self.batch = BatchSystem(spool, frozenset({self.account}), slots)
        self.routes = Routes(self.batch, Files(self.scratch, download_limit))
        #: Seconds that every answer of the API takes.
        self.answer_seconds = 0.0
        #: Every call of the API that arrived, the oldest first.
        self.calls: list[Call] = []
        self.closing = threading.Event()
        self._faults = Faults()
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    def __enter__(self) -> Self:
        self.tokens.audience = self.token_url
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        self.batch.close()

    @property
    def url(self) -> str:
        """Where the API is."""
        return f"http://127.0.0.1:{self._server.server_port}{_API}"

    @property
    def token_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}{_TOKEN}"

    # -- on command -----------------------------------------------------------------------------------

    def misbehave(
        self, behaviour: Behaviour, *, where: str = "", method: str = "", times: int = 1, acts: bool = False
    ) -> None:
        """Treat the next calls with ``where`` in their path so; with ``acts`` they take effect first."""
        self._faults.add(Fault(behaviour, where, method, times, acts))

    def behave(self) -> None:
        """Forget what was to go wrong."""
        self._faults.clear()

    def add_job(self, name: str, *, tasks: int = 1, state: str = "PENDING") -> Job:
        """A job that only has states; change them by its tasks."""
        job = self.batch.add(name, tasks)
        for task in job.tasks:
            task.state = state
        return job

    def vanish(self, job_id: int) -> None:
        """The batch system knows nothing of the job any more."""
        with self.batch.lock:
            del self.batch.jobs[job_id]

    def count(self, method: str, where: str) -> int:
        """How many calls with ``where`` in their path arrived."""
        return sum(call.method == method and where in call.path for call in self.calls)

    # -- inside ---------------------------------------------------------------------------------------

    def respond(self, handler: _Handler, call: Call) -> None:
        """Answer a call, or misbehave."""
        if call.path.startswith(_API):
            self.calls.append(call)
            self.closing.wait(self.answer_seconds)
        fault = self._faults.next(call.method, call.path)
        if fault is None:
            handler.answer(*self._answer(handler.headers.get("Authorization"), call))
            return
        if fault.acts:
            self._answer(handler.headers.get("Authorization"), call)
        match fault.behaviour:
            case Answer(code, body, content_type):
                handler.answer(code, body, content_type)
            case HangUp():
                handler.close_connection = True
            case Trickle(pause):
                handler.trickle(pause, self.closing)
            case _:
                self.closing.wait()
                handler.close_connection = True

    def _answer(self, authorization: str | None, call: Call) -> tuple[int, str]:
        if call.path == _TOKEN and call.method == "POST":
            try:
                return 200, json.dumps(self.tokens.issue(call.form))
            except InvalidClient as error:
                problem = {"error": "invalid_client", "error_description": str(error)}
                return 401, json.dumps(problem)
        below = Call(call.method, call.path.removeprefix(_API), call.query, call.content_type, call.body)
        if below.path.startswith("/status/"):
            return 200, json.dumps(status())
        if not self.tokens.valid(authorization):
            return 401, json.dumps({"detail": "Invalid or expired token"})
        found: Any = self.routes.answer(below)
        return (404, json.dumps({"detail": "Not Found"})) if found is None else (200, json.dumps(found))


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # The threads of connections that a client keeps open would never be joined.
    block_on_close = False
    request_queue_size = 128

    def __init__(self, api: Superfacility) -> None:
        self.api = api
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that give up are part of what is tested."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def _serve(self) -> None:
        path, query = decoded(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        call = Call(self.command, path, query, self.headers.get("Content-Type", ""), body)
        cast(_Server, self.server).api.respond(self, call)

    do_GET = do_POST = do_PUT = do_DELETE = _serve  # noqa: N815 -- the base class's names

    def answer(self, code: int, body: str, content_type: str = "application/json") -> None:
        """Send a whole response."""
        content = body.encode()
        self.send_response(code)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def trickle(self, pause: float, closing: threading.Event) -> None:
        """Send a response that never ends, until the client gives up or the server closes."""
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Length", str(10**9))
        self.end_headers()
        while not closing.wait(pause):
            self.wfile.write(b" ")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- the base class's name
        """Say nothing: ``Superfacility.calls`` has them."""
