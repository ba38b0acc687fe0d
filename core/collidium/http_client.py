"""HTTP clients of parts of the server that call another service: one each, for as long as the part lives."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import httpx

_LOOPBACK: Final = ("localhost", "127.0.0.1", "[::1]")


def past_proxies() -> dict[str, None]:
    """Mounts of httpx: a proxy of the environment is for the world outside, not for this machine."""
    return {f"all://{host}": None for host in _LOOPBACK}


async def body_of(response: httpx.Response, most_bytes: int) -> bytes:
    """The body of an answer, read as it comes; of a longer one a little more than ``most_bytes``."""
    content = bytearray()
    async for chunk in response.aiter_bytes():
        content += chunk
        if len(content) > most_bytes:
            break
    return bytes(content)


class HttpClient:
    """A client that is made when it is first needed; it follows no redirects."""

    def __init__(self, timeout_seconds: float, connections: int) -> None:
        """``timeout_seconds`` hold for each step of a call; ``connections`` are open at once at the most."""
        self._timeout_seconds = timeout_seconds
        self._connections = connections
        self._client: httpx.AsyncClient | None = None
        self._opening = asyncio.Lock()

    async def get(self) -> httpx.AsyncClient:
        """The client, always the same."""
        async with self._opening:
            if self._client is None:
                # To import httpx and read all certificates here would hold up every other request.
                self._client = await asyncio.to_thread(self._make)
        return self._client

    def _make(self) -> httpx.AsyncClient:
        import httpx

        return httpx.AsyncClient(
            timeout=self._timeout_seconds,
            follow_redirects=False,
            limits=httpx.Limits(
                max_connections=self._connections, max_keepalive_connections=self._connections
            ),
            mounts=past_proxies(),
        )

    async def close(self) -> None:
        """Give back connections. Idempotent."""
        if self._client is not None:
            client, self._client = self._client, None
            await client.aclose()
