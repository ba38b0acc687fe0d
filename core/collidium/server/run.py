"""Serve the platform from this machine: admin token, sockets, and one process or several that share them."""

from __future__ import annotations

import asyncio
import gc
import resource
import secrets
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress

import click
from pydantic import SecretStr

from collidium.errors import ConfigurationError
from collidium.files.data_directory import make_secret_file
from collidium.platform import Platform
from collidium.runtime import logs
from collidium.server.supervisor import supervise
from collidium.server.worker import BACKLOG, check_shared, follow, hide_secrets, serve_here
from collidium.settings import Settings


def run(settings: Settings) -> None:
    """Serve until stopped. Raises ConfigurationError when it cannot start."""
    logs.configure(settings.log_level, settings.log_format)
    settings = ensure_admin_token(settings)
    _allow_many_connections()
    with ExitStack() as stack:
        listeners = [stack.enter_context(listener) for listener in listeners_of(settings)]
        # The real ports: the local hub's addresses are made from them.
        port, *hub_port = [listener.getsockname()[1] for listener in listeners]
        settings = settings.model_copy(update={"port": port, "hub_port": hub_port[0] if hub_port else 0})

        def announce() -> None:
            hub = f"\nIts hub is at {settings.hub_root_url}" if settings.hub_root_url else ""
            click.echo(f"Collidium is at {settings.base_url}{hub}")

        if settings.workers == 1:
            serve_here(settings, listeners, announce)
        else:
            hide_secrets()
            asyncio.run(_rehearse(settings))
            gc.enable()
            supervise(settings, listeners, announce)


def run_worker(settings: Settings, announce: Callable[[str], None]) -> None:
    """Work without serving until stopped; ``announce`` gets what it does. Raises ConfigurationError."""
    logs.configure(settings.log_level, settings.log_format)
    with ExitStack() as stack:
        listeners, said = [], "Following requests."
        if settings.worker_port is not None:
            advice = "choose another with PLATFORM_WORKER_PORT, or 0 for any"
            listener = listen(settings.host, settings.worker_port, settings.body_timeout_seconds, advice)
            listeners.append(stack.enter_context(listener))
            said += f" Metrics are at http://{settings.host}:{listener.getsockname()[1]}/metrics"
        follow(settings, listeners, lambda: announce(said))


def _allow_many_connections() -> None:
    """As many open files as the system lets this process have: each connection is one."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):  # then it stays as it is
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


async def _rehearse(settings: Settings) -> None:
    """Open the platform before any worker does: what is wrong, or the schema lacks, is seen to once."""
    async with Platform.open(settings) as platform:
        await check_shared(platform)
        if settings.follow_requests:
            platform.runner.check()


FILE = "admin-token"


def ensure_admin_token(settings: Settings) -> Settings:
    """The settings with an admin token: the one that is set, else the data directory's, made when absent.

    With PostgreSQL it has to be set, which the platform checks when it opens.
    Prints where the token is, never the token. Raises ConfigurationError for a file that holds none.
    """
    if settings.admin_token is not None or not settings.sqlite_file:
        return settings
    path = settings.data_dir / FILE
    if make_secret_file(path, secrets.token_urlsafe(32)):
        click.echo(f"A new admin token is in {path}", err=True)
        click.echo("To fill this server with datasets, truth and baselines: collidium seed", err=True)
    token = path.read_text(encoding="ascii").strip()
    if not token:
        raise ConfigurationError(f"the admin token in {path} is empty; delete the file to get a new one")
    return settings.model_copy(update={"admin_token": SecretStr(token)})


LAST_PORT = 65535


def listeners_of(settings: Settings) -> Iterator[socket.socket]:
    """The server's socket, and the one at whose root the local hub is, unless there is none."""
    seconds = settings.body_timeout_seconds
    yield listen(settings.host, settings.port, seconds)
    if settings.hub_port == 0 or settings.hub_url:
        return
    port = settings.hub_port or (settings.port and settings.port + 1)
    advice = "the hub's; choose another with PLATFORM_HUB_PORT, or 0 for none"
    if port > LAST_PORT:  # the resolver would take the remainder
        raise ConfigurationError(f"there is no port {port} ({advice})")
    yield listen(settings.host, port, seconds, advice)


def listen(
    host: str, port: int, seconds: float, advice: str = "choose another with --port, or 0 for any"
) -> socket.socket:
    """A listening socket; port 0 takes a free one. Raises ConfigurationError when it cannot be had.

    Linux ends its connections when the other side has read nothing for so many ``seconds``.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise ConfigurationError(f"cannot listen on {host}: {error.strerror or error}") from error
    try:
        # A restart need not wait until the last server's connections are forgotten.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if sys.platform == "linux":
            # A time limit on sending could not distinguish a slow reader from one that does not read.
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(seconds * 1000))
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise ConfigurationError(
            f"cannot listen on port {port} of {host}: {error.strerror or error} ({advice})"
        ) from error
    return listener
