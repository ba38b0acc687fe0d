"""A server whose routes handle request bodies in different ways; test_bodies.py runs it as a process."""

import asyncio
import re
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path

from hypercorn.asyncio import serve
from hypercorn.config import Config
from quart import Quart, Response, request

from collidium.api import bodies
from collidium.errors import CollidiumError, Forbidden
from collidium.files.held import sweep

DIRECTORY = Path(sys.argv[1])


def peak_kib() -> int:
    """The most memory this process ever had; unlike getrusage, not what its parent had when it forked."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1])


app = Quart("bodies", static_folder=None)
app.config["MAX_CONTENT_LENGTH"] = 100_000
app.config["BODY_TIMEOUT"] = 1
app.config["RESPONSE_TIMEOUT"] = 0.5  # Quart's is a minute
bodies.install(app)
requests_seen = {"cancelled": 0}


@app.errorhandler(CollidiumError)
async def problem(error: CollidiumError) -> tuple[dict[str, object], int]:
    return {"title": error.title, "detail": error.detail}, error.status


@app.post("/slow")
async def slow() -> dict[str, int]:
    request.max_content_length = None
    size = 0
    async for chunk in request.body:
        size += len(chunk)
        await asyncio.sleep(0.001)  # the slowness that is tested
    return {"size": size, "peak_kib": peak_kib()}


@app.post("/file")
async def file() -> dict[str, object]:
    limit = int(request.args.get("limit", 1_000_000_000))
    try:
        async with bodies.receive_to_file(request, DIRECTORY, limit) as received:
            content = received.path.read_bytes() if received.size_bytes < 1000 else b""
            if "keep" in request.args:
                await received.move_to(DIRECTORY / "kept")
            return {
                "sha256": received.sha256,
                "size": received.size_bytes,
                "fields": received.fields,
                "content": content.decode(),
                "peak_kib": peak_kib(),
            }
    except asyncio.CancelledError:
        requests_seen["cancelled"] += 1
        raise


@app.post("/json")
async def json() -> dict[str, object]:
    return {"json": await request.get_json(), "again": await request.get_json()}


@app.post("/form")
async def form() -> dict[str, object]:
    return dict(await request.form)


@app.post("/ignore")
async def ignore() -> dict[str, bool]:
    return {"ok": True}


@app.post("/refuse")
async def refuse() -> dict[str, bool]:
    raise Forbidden("not you")


@app.get("/large")
async def large() -> Response:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(64):
            yield bytes(1024 * 1024)

    return Response(pieces())


@app.get("/seen")
async def seen() -> dict[str, int]:
    return requests_seen


async def main() -> None:
    sweep(DIRECTORY)
    listener = socket.create_server(("127.0.0.1", 0))
    config = Config()
    config.bind = [f"fd://{listener.fileno()}"]
    config.graceful_timeout = 1
    sys.stdout.write(f"{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    await serve(app, config)


asyncio.run(main())
