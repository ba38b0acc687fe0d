"""The proxies of ``deploy/proxy`` on loopback, less TLS."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import httpx

from collidium.testing.processes import ending_with_parent, wait_until

FILES: Final = Path(__file__).parents[1] / "deploy" / "proxy"
_PATH: Final = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin"


@contextmanager
def nginx(directory: Path, port: int, servers: Sequence[int]) -> Iterator[str]:
    """Serve two servers by their ports; the address, until the context ends."""
    text = re.sub(
        r"    server \{\n        listen 80;.*?\n    \}\n",
        "",
        (FILES / "nginx.conf").read_text(),
        flags=re.DOTALL,
    )
    text = re.sub(r" *(ssl|listen).*;\n", "", text)
    text = text.replace("server_name", f"listen 127.0.0.1:{port};\n        server_name")
    for old, new in zip((8000, 8010), servers, strict=True):
        text = text.replace(f"127.0.0.1:{old}", f"127.0.0.1:{new}")
    # Shorter than the delay of tests, as there.
    text = re.sub(r"keepalive_timeout \d+s", "keepalive_timeout 1s", text)
    directory.mkdir()
    config = directory / "nginx.conf"
    config.write_text(f"daemon off;\npid {directory}/pid;\nerror_log {directory}/error.log;\n{text}")
    command = ["nginx", "-p", str(directory), "-e", str(directory / "error.log"), "-c", str(config)]
    with _running(directory, command, port, {}) as url:
        yield url


@contextmanager
def caddy(directory: Path, port: int, servers: Sequence[int]) -> Iterator[str]:
    """Serve servers by their ports; the address, until the context ends."""
    directory.mkdir()
    config = directory / "Caddyfile"
    config.write_text("{\n\tadmin off\n\tauto_https off\n}\n" + (FILES / "Caddyfile").read_text())
    command = ["caddy", "run", "--adapter", "caddyfile", "--config", str(config)]
    upstreams = " ".join(f"127.0.0.1:{server}" for server in servers)
    variables = {"SITE": f"http://:{port}", "UPSTREAMS": upstreams, "HOME": str(directory)}
    with _running(directory, command, port, variables) as url:
        yield url


@contextmanager
def _running(directory: Path, command: list[str], port: int, variables: dict[str, str]) -> Iterator[str]:
    url = f"http://127.0.0.1:{port}"

    def passes() -> bool:
        try:
            return httpx.get(f"{url}/healthz", trust_env=False).is_success
        except httpx.TransportError:
            return False

    with (directory / "log").open("wb") as log:
        proxy = subprocess.Popen(
            ending_with_parent(command), env={"PATH": _PATH, **variables}, stdout=log, stderr=log
        )
    try:
        wait_until(passes, proxy, 60, (directory / "log").read_text)
        yield url
    finally:
        proxy.terminate()
        proxy.wait(20)
