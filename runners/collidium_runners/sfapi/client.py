"""The library's client on a transport of our own.

``sfapi_client`` knows tokens, the machine's models and how a submission becomes a task and a job. Its HTTP
calls are replaced: they send a submission again when an answer is late, so that a job is submitted twice,
wait 65 s for a refused connection, and read responses of any size.
"""

# The library's calls are wrapped by what retries them; ours are plain methods.
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

#: Largest answer that is read: a piece of a file, or the rows of a call, with a margin.
LARGEST_ANSWER: Final = 8 * 1024**2
#: Calls at one time.
CONNECTIONS: Final = 20


class Tokens:
    """Access tokens: the library signs the assertion, and knows when a token expires."""

    def __init__(self, make: Callable[[], AsyncClient], seconds: float) -> None:
        self._make = make
        self._seconds = seconds
        self._client = make()
        self._lock = asyncio.Lock()
        self._failures = 0
        self._trouble = ""

    async def current(self) -> str:
        """One that has not expired; raises RunnerUnavailable."""
        async with self._turn():
            return await self._ask()

    async def instead_of(self, refused: str) -> str:
        """Another than the one that the API refused; raises RunnerUnavailable."""
        async with self._turn():
            if (token := await self._ask()) != refused:
                return token
            await self._begin_anew()
            return await self._ask()

    async def close(self) -> None:
        await self._client.close()

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        seen = self._failures
        async with self._lock:
            if self._failures != seen:
                # Callers that waited for a failed attempt fail with it.
                raise RunnerUnavailable(self._trouble)
            yield

    async def _ask(self) -> str:
        try:
            async with asyncio.timeout(self._seconds):
                return str(await self._client.token)
        except Exception as error:
            # The library lets through whatever its HTTP client (httpx or httpx2), its signing and its reading
            # raise. Their texts may quote what was sent, so only the kind is shown.
            data = getattr(error, "error", None)
            kind = data if isinstance(data, str) and data.isidentifier() else type(error).__name__
            # It may have kept what it could not read, and would go on trying to use it.
            await self._begin_anew()
            self._failures += 1
            self._trouble = f"the batch API gave no access token: {kind}"
            raise RunnerUnavailable(self._trouble) from None

    async def _begin_anew(self) -> None:
        await self.close()
        self._client = self._make()


class Client(AsyncClient):  # type: ignore[misc]  # the library ships no types
    """As the library's, but every call takes its turn, is sent once, and ends in time.

    Calls raise RunnerUnavailable, and nothing else. What is in an answer is for the caller to judge.
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
        # What follows names machines, files and jobs.
        what = f"{method} {'/'.join(url.split('/')[:2])}"
        token = await self._tokens.current()
        answer = await self._send(what, method, url, token, content)
        if answer.status_code == UNAUTHORIZED:
            # Refused, so without effect: it may be sent again.
            token = await self._tokens.instead_of(token)
            answer = await self._send(what, method, url, token, content)
        if answer.status_code >= ERRORS:
            raise BadAnswer(f"the batch API answered {answer.status_code} to {what}", answer.status_code)
        return answer

    async def _send(
        self, what: str, method: str, url: str, token: str, content: dict[str, Any]
    ) -> httpx.Response:
        await self._pace.turn()
        headers = {"Authorization": f"Bearer {token}"}
        try:
            answer = await self._transport.request(method, url, headers=headers, **content)
        except httpx.TimeoutException:
            raise RunnerUnavailable(f"the batch API did not answer {what} in {self._seconds:g} s") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise RunnerUnavailable(f"the batch API did not answer {what}: {type(error).__name__}") from None
        if len(answer.content) > LARGEST_ANSWER:
            raise BadAnswer(f"the batch API's answer to {what} is too large", TOO_LARGE)
        return answer


class Pace:
    """Turns, so many per second and evenly apart; those who wait get theirs in order."""

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
        """Return when the caller may call."""
        now = self._clock()
        mine = max(self._next, now)
        self._next = mine + self._apart
        if mine > now:
            await self._sleep(mine - now)


UNAUTHORIZED: Final = 401
NOT_FOUND: Final = 404
TOO_LARGE: Final = 413
#: The question, or its answer, was too long.
TOO_LONG: Final = frozenset({TOO_LARGE, 414, 431})
#: The first status that is an error.
ERRORS: Final = 400


class BadAnswer(RunnerUnavailable):
    """The API answered with an error."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status
