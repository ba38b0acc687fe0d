"""A server that starts while its hub does not respond."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from tests.waiting import eventually

from collidium.testing.server import ServerProcess


@pytest.mark.parametrize("workers", [1, 2])
def test_one_warning_names_the_hub(tmp_path: Path, workers: int) -> None:
    """The server does not wait for the hub, which here accepts calls and does not respond."""
    with socket.create_server(("127.0.0.1", 0)) as hub:
        url = f"http://127.0.0.1:{hub.getsockname()[1]}"
        settings = {
            "PLATFORM_HUB_URL": url,
            "PLATFORM_WORKERS": str(workers),
            "PLATFORM_IDENTITY_TIMEOUT_SECONDS": "60",
        }
        with ServerProcess(tmp_path, env=settings) as server:
            warning = f"the hub at {url} does not respond: sign-ins, datasets, downloads and publication"
            assert warning not in server.log()
            hub.close()
            eventually(lambda: warning in server.log())
            assert server.stop() == 0
            assert server.log().count(warning) == 1
