"""The identity provider ``hub``: asks the hub's whoami who stands behind a token, and what models it sees."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from cachetools import TTLCache

from collidium import hookspecs
from collidium.contracts.identity import USERNAME, Identity, IdentityProvider, IdentityUnavailable
from collidium.http_client import HttpClient, body_of

if TYPE_CHECKING:
    from collidium.settings import Settings

#: Answers kept, and for how long a refusal is believed: a token may have been made a moment ago.
KNOWN_TOKENS: Final = 10_000
REFUSED_TOKENS: Final = 1_000
REFUSED_SECONDS: Final = 5.0
#: Calls to the hub at one time; further ones wait their turn until the timeout.
CONNECTIONS: Final = 20
#: The same about models, apart, so that they hold up nobody's sign-in.
MODEL_CONNECTIONS: Final = 4
#: More than any whoami answer has; what is longer is something else.
ANSWER_BYTES: Final = 256 * 1024

_TOKEN: Final = re.compile(r"[\x21-\x7e]{1,4096}")

#: The token's owner, None when it is not valid, or a sentence that says why that cannot be known.
Answer = Identity | str | None


@hookspecs.hookimpl
def collidium_identity_providers(settings: Settings) -> Sequence[IdentityProvider]:
    return [
        HubIdentity(
            settings.hub,
            timeout_seconds=settings.identity_timeout_seconds,
            cache_seconds=settings.identity_cache_seconds,
        )
    ]


class HubIdentity(IdentityProvider):
    """Checks tokens with ``GET {hub_url}/api/whoami-v2``.

    One client with its connections lives as long as this does. Answers are kept for a while, by the
    token's SHA-256; however many ask about one token at once, the hub is asked once.
    """

    name = "hub"

    def __init__(self, hub_url: str, *, timeout_seconds: float, cache_seconds: float) -> None:
        self._url = f"{hub_url}/api/whoami-v2"
        self._models_url = f"{hub_url}/api/models"
        self._timeout_seconds = timeout_seconds
        self._asking: dict[str, asyncio.Task[Answer]] = {}
        self._http = HttpClient(timeout_seconds, CONNECTIONS)
        self._models_http = HttpClient(timeout_seconds, MODEL_CONNECTIONS)
        # Apart, so that a flood of bad tokens drives no good one out.
        self._known: TTLCache[str, Identity] = TTLCache[str, Identity](KNOWN_TOKENS, cache_seconds)
        self._refused: TTLCache[str, bool] = TTLCache[str, bool](
            REFUSED_TOKENS, min(cache_seconds, REFUSED_SECONDS)
        )

    async def identify(self, token: str) -> Identity | None:
        if not _TOKEN.fullmatch(token):
            return None
        key = hashlib.sha256(token.encode()).hexdigest()
        if identity := self._known.get(key):
            return identity
        if key in self._refused:
            return None
        # Shielded: one caller that gives up must not take the answer from the others.
        answer = await asyncio.shield(self._asking.get(key) or self._start(key, token))
        if isinstance(answer, str):
            raise IdentityUnavailable(answer)
        return answer

    async def sees_model(self, token: str, model_repo: str) -> bool:
        client = await self._models_http.get()
        import httpx

        headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        try:
            async with (
                asyncio.timeout(self._timeout_seconds),
                client.stream("GET", f"{self._models_url}/{model_repo}", headers=headers) as response,
            ):
                # A private repository of another account is answered as none at all.
                if response.headers.get("X-Error-Code") == "RepoNotFound" or response.status_code == 404:
                    return False
                if response.status_code == httpx.codes.OK:
                    return True
                # Also a redirect: the repository has another name.
                raise IdentityUnavailable(f"the hub answered {response.status_code} about a model")
        except TimeoutError:
            raise IdentityUnavailable(f"the hub did not answer within {self._timeout_seconds:g} s") from None
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            raise IdentityUnavailable(f"the hub cannot be reached ({type(error).__name__})") from None

    async def close(self) -> None:
        for task in list(self._asking.values()):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        await self._http.close()
        await self._models_http.close()

    def _start(self, key: str, token: str) -> asyncio.Task[Answer]:
        task = self._asking[key] = asyncio.create_task(self._ask_once(key, token))
        task.add_done_callback(lambda _: self._asking.pop(key, None))
        return task

    async def _ask_once(self, key: str, token: str) -> Answer:
        answer = await self._ask(token)
        if isinstance(answer, Identity):
            self._known[key] = answer
        elif answer is None:
            self._refused[key] = True
        return answer

    async def _ask(self, token: str) -> Answer:
        client = await self._http.get()
        import httpx

        headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        try:
            async with (
                asyncio.timeout(self._timeout_seconds),
                client.stream("GET", self._url, headers=headers) as response,
            ):
                if response.status_code in {401, 403}:
                    return None
                if response.status_code != httpx.codes.OK:
                    return f"the hub answered {response.status_code} to whoami"
                return _owner(await body_of(response, ANSWER_BYTES))
        except TimeoutError:
            return f"the hub did not answer within {self._timeout_seconds:g} s"
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            # The kind of error says enough; its request carries the token.
            return f"the hub cannot be reached ({type(error).__name__})"


def _owner(content: bytes) -> Answer:
    try:
        document: Any = json.loads(content)
    except (ValueError, RecursionError):
        return "the hub's answer to whoami is not JSON"
    name = document.get("name") if isinstance(document, dict) else None
    if not isinstance(name, str):
        return "the hub's answer to whoami has no usable name"
    try:
        owner = Identity(
            name, read_only=_role(document) == "read", organisations=frozenset(_organisations(document))
        )
    except ValueError:
        return "the hub's answer to whoami has no usable name"
    # An organisation's token stands for nobody in particular.
    return owner if document.get("type", "user") == "user" else None


def _organisations(document: dict[str, Any]) -> Iterator[str]:
    """Names of the organisations that the token shows; what is no name is left out."""
    listed = document.get("orgs")
    for item in listed if isinstance(listed, list) else ():
        name = item.get("name") if isinstance(item, dict) else None
        if isinstance(name, str) and USERNAME.fullmatch(name):
            yield name


def _role(document: dict[str, Any]) -> object:
    """What the token may do, as far as the hub tells: fine-grained tokens may or may not write."""
    auth = document.get("auth")
    token = auth.get("accessToken") if isinstance(auth, dict) else None
    return token.get("role") if isinstance(token, dict) else None
