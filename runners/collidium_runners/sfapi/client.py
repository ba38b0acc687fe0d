"""The client of the library ``sfapi_client`` with replaced HTTP calls.

The library handles tokens, the API's models, and the tasks of submissions. Its HTTP calls repeat a submission
when the response is late, so that a job is submitted twice, wait 65 s for a refused connection, and read
responses of any size.
"""

# The library wraps its methods to retry them; ours are plain methods.
# pyright: reportIncompatibleVariableOverride=false

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import httpx
from sfapi_client import AsyncClient

from collidium.contracts.runner import RunnerUnavailable
from collidium.runtime.http_client import HttpClient
from collidium.runtime.network import BoundedTransport

#: Maximum size of a response: a chunk of a file, or the rows of a query, with a margin.
LARGEST_ANSWER: Final = 8 * 1024**2
#: Maximum number of concurrent calls.
CONNECTIONS: Final = 20


class Tokens:
    """Access tokens, which the library requests and renews."""

    def __init__(self, make: Callable[[], AsyncClient], seconds: float) -> None:
        self._make = make
        self._seconds = seconds
        self._client = make()
        self._lock = asyncio.Lock()
        self._failures = 0
        self._trouble = ""

    async def current(self) -> str:
        """Return a token that has not expired. Raises RunnerUnavailable."""
        async with self._turn():
            return await self._token()

    async def replacement(self, rejected: str) -> str:
        """Return another token than the one that the API rejected. Raises RunnerUnavailable."""
        async with self._turn():
            if (token := await self._token()) != rejected:
                return token
            await self._reset()
            return await self._token()

    async def close(self) -> None:
        await self._client.close()

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        seen = self._failures
        async with self._lock:
            if self._failures != seen:
                # Callers that waited during a failed attempt fail, too, instead of repeating it.
                raise RunnerUnavailable(self._trouble)
            yield

    async def _token(self) -> str:
        try:
            async with asyncio.timeout(self._seconds):
                return str(await self._client.token)
        except Exception as error:
            # The library passes on all errors of its HTTP client (httpx or httpx2), of signing and of
            # parsing. Their messages may contain secrets, so only the type is shown.
            data = getattr(error, "error", None)
            kind = data if isinstance(data, str) and data.isidentifier() else type(error).__name__
            # The library may have stored an invalid response, and would use it again.
            await self._reset()
            self._failures += 1
            self._trouble = f"the batch API gave no access token: {kind}"
            raise RunnerUnavailable(self._trouble) from None

    async def _reset(self) -> None:
        await self.close()
        self._client = self._make()


class ApiClient(AsyncClient):  # type: ignore[misc]  # the library ships no types
    """The library's client with calls that are limited in rate, sent once, and limited in time.

    Calls raise only RunnerUnavailable. Callers validate the content of responses.
    """

    def __init__(
        self, client_id: str, key: str, url: str, token_url: str, calls_per_second: float, call_seconds: float
    ) -> None:
        super().__init__(client_id, key, api_base_url=url, token_url=token_url)
        self._seconds = call_seconds
        self._pace = Pace(calls_per_second)
        self._tokens = Tokens(lambda: AsyncClient(client_id, key, token_url=token_url), call_seconds)
        self._transport = httpx.AsyncClient(
            base_url=url,
            headers={"Accept": "application/json"},
            timeout=None,  # noqa: S113 -- the transport's
            transport=BoundedTransport(HttpClient(call_seconds, CONNECTIONS), LARGEST_ANSWER),
        )

    async def get(self, url: str, params: dict[str, Any] | None = None) -> httpx.Response:
        return await self._call("GET", url, params=params)

    async def post(
        self, url: str, data: dict[str, Any] | None = None, json: dict[str, Any] | None = None
    ) -> httpx.Response:
        return await self._call("POST", url, data=data, json=json)

    async def put(
        self, url: str, data: dict[str, Any] | None = None, files: dict[str, Any] | None = None
    ) -> httpx.Response:
        return await self._call("PUT", url, data=data, files=files)

    async def delete(self, url: str) -> httpx.Response:
        return await self._call("DELETE", url)

    async def close(self) -> None:
        await self._tokens.close()
        await self._transport.aclose()

    async def _call(self, method: str, url: str, **content: Any) -> httpx.Response:
        # For messages: without the rest of the URL, which names machines, files and jobs.
        what = f"{method} {'/'.join(url.split('/')[:2])}"
        token = await self._tokens.current()
        response = await self._send(what, method, url, token, content)
        if response.status_code == UNAUTHORIZED:
            # It had no effect, so it may be sent again.
            token = await self._tokens.replacement(token)
            response = await self._send(what, method, url, token, content)
        if response.status_code >= ERRORS:
            raise BadAnswer(f"the batch API answered {response.status_code} to {what}", response.status_code)
        return response

    async def _send(
        self, what: str, method: str, url: str, token: str, content: dict[str, Any]
    ) -> httpx.Response:
        await self._pace.turn()
        headers = {"Authorization": f"Bearer {token}"}
        try:
            response = await self._transport.request(method, url, headers=headers, **content)
        except httpx.TimeoutException:
            raise RunnerUnavailable(f"the batch API did not answer {what} in {self._seconds:g} s") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise RunnerUnavailable(f"the batch API did not answer {what}: {type(error).__name__}") from None
        if len(response.content) > LARGEST_ANSWER:
            raise BadAnswer(f"the batch API's answer to {what} is too large", TOO_LARGE)
        return response


class Pace:
    """Limits calls to a number per second, evenly spaced and in order."""

    def __init__(
        self,
        per_second: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._apart = 1 / per_second
        self._clock = clock
        self._sleep = sleep
        self._next = 0.0

    async def turn(self) -> None:
        """Return when the next call may be sent."""
        now = self._clock()
        turn = max(self._next, now)
        self._next = turn + self._apart
        if turn > now:
            await self._sleep(turn - now)


UNAUTHORIZED: Final = 401
NOT_FOUND: Final = 404
TOO_LARGE: Final = 413
#: Statuses for too long a request or response.
TOO_LONG: Final = frozenset({TOO_LARGE, 414, 431})
#: The lowest status of an error.
ERRORS: Final = 400


class BadAnswer(RunnerUnavailable):
    """The API answered with an error."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status
