"""The hub alone, served from a directory; run by the tests in a process of its own."""

import asyncio
import socket
import sys
from pathlib import Path

from hypercorn.asyncio import serve
from hypercorn.config import Config
from quart import Quart

from collidium.api import bodies
from collidium_plugins.local_hub.openid.requests import RegisteredClient
from collidium_plugins.local_hub.web import make_blueprint


async def main(directory: Path, port: int, quota: int, callback: str) -> None:
    app = Quart("hub", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = 100_000
    client = RegisteredClient("collidium-web", redirect_uris=(callback,))
    app.url_map.merge_slashes = False
    bodies.install(app)
    app.register_blueprint(make_blueprint(directory, client, quota_bytes=quota))
    listener = socket.create_server(("127.0.0.1", port))
    config = Config()
    config.bind = [f"fd://{listener.fileno()}"]
    config.graceful_timeout = 1
    sys.stdout.write(f"{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    await serve(app, config)


asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]))
