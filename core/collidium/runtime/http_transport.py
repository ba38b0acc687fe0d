"""The server's outgoing calls for code that wants a client of httpx."""

from __future__ import annotations

import httpx

from collidium.runtime.http_client import HttpClient


class BoundedTransport(httpx.AsyncBaseTransport):
    """Sends the requests of an ``httpx.AsyncClient`` through an :class:`HttpClient`.

    Bodies are in memory, those of responses up to ``maximum_bytes`` and a little more. The time of a call is
    that of the client below, whatever the one above says.
    """

    def __init__(self, http: HttpClient, maximum_bytes: int) -> None:
        self._http = http
        self._maximum_bytes = maximum_bytes

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return await self._http.send(request, self._maximum_bytes)

    async def aclose(self) -> None:
        await self._http.close()
