"""``huggingface_hub`` with timeouts, errors of our own and no tokens on disk; and parsing of whoami."""

from __future__ import annotations

import asyncio
import functools
import json
import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, TypeVar

from collidium.contracts.identity import USERNAME, Identity
from collidium.errors import (
    CollidiumError,
    Conflict,
    Forbidden,
    Unauthenticated,
    Unavailable,
    Unreachable,
    UpstreamError,
)
from collidium.hub.offline import NAME, is_offline
from collidium.runtime.http_client import past_proxies
from collidium.runtime.waiting import in_thread

if TYPE_CHECKING:
    from huggingface_hub import HfApi

    from collidium.runtime.network import Deadline

T = TypeVar("T")

#: Timeouts to connect, read, write, and get a connection from the pool, in seconds.
TIMEOUTS: Final = (10.0, 60.0, 60.0, 60.0)
#: Timeout of a call, including the client's own retries.
CALL_SECONDS: Final = 120.0
#: Minimum rate of transfers, in bytes per second.
_MINIMUM_RATE: Final = 1_000_000

#: The hub is too busy; a retry may help.
_TRANSIENT: Final = frozenset({408, 425, 429})
#: Another client changes the same repository; a retry may help.
_CONTESTED: Final = frozenset({404, 409, 412, 423})
#: Setting up closes the current client, which must not be in use.
_preparing: Final = threading.Lock()


class HubError(RuntimeError):
    """A call to the hub failed; the message holds no secret."""

    #: Status of the response; None without a response.
    status: int | None = None


class HubUnavailable(HubError):
    """The hub cannot be reached, is busy or sent an invalid response. A retry may help."""


class HubContested(HubUnavailable):
    """Another client changes the same repository. A retry may help."""


class HubRefused(HubError):
    """The hub rejects the call permanently."""


@dataclass(frozen=True, slots=True)
class Hub:
    """The hub at ``endpoint``, called with a token, which is only kept in memory."""

    endpoint: str
    token: str = field(repr=False)

    async def ask(self, function: Callable[[HfApi], T], seconds: float = CALL_SECONDS) -> T:
        """Call ``function`` with a client in a thread and return its result.

        Raises :class:`HubUnavailable`, also after ``seconds`` and with ``HF_HUB_OFFLINE``, and
        :class:`HubRefused`.
        """
        if is_offline():
            raise HubUnavailable(f"{NAME} forbids calls of the hub")
        from collidium.runtime import metrics  # takes 20 ms, which many users of the client never need

        with metrics.timed(metrics.HUB, metrics.HUB_FAILURES, "client", HubUnavailable):
            return await self._ask_in_time(function, seconds)

    async def _ask_in_time(self, function: Callable[[HfApi], T], seconds: float) -> T:
        try:
            async with asyncio.timeout(seconds):
                # A thread of its own: a slow hub must not exhaust a shared pool.
                return await in_thread(lambda: self._ask(function, seconds), "hub")
        except TimeoutError:
            raise HubUnavailable(f"the hub did not finish within {seconds:g} s") from None
        except Unavailable as error:
            raise HubUnavailable(error.detail) from error

    def _ask(self, function: Callable[[HfApi], T], seconds: float) -> T:
        # Ends the thread, too, if the response is slow; later than the caller, who reports the timeout.
        prepare().at = monotonic() + seconds + 1
        from huggingface_hub import HfApi

        # False, not None: the client must not use a token saved on this machine.
        api = HfApi(endpoint=self.endpoint, token=self.token or False)
        try:
            return function(api)
        except HubError:
            raise
        except Exception as error:
            # Any error of the HTTP library that huggingface_hub uses. Its text may hold signed URLs.
            raise _as_hub_error(error, self.token) from None


def transfer_seconds(size_bytes: int) -> float:
    """Return the timeout for the transfer of a file."""
    return CALL_SECONDS + size_bytes / _MINIMUM_RATE


def prepare() -> Deadline:
    """Configure huggingface_hub for this process, if possible before its first import.

    Returns the deadline that applies to calls of the current thread.
    """
    with _preparing:
        return _prepare()


@functools.cache
def _prepare() -> Deadline:
    # Read at its import. Xet is disabled as not every hub supports it.
    os.environ["HF_HUB_DISABLE_XET"] = "1"
    os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
    os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
    from huggingface_hub import get_session, set_client_factory
    from huggingface_hub.utils import logging as hub_logging

    # Warnings may hold signed URLs; errors are raised anyway.
    hub_logging.set_verbosity(logging.ERROR)
    from collidium.runtime.network import Deadline, keep_deadline
    from collidium.runtime.public_addresses import refuse_redirect

    own, deadline = get_session(), Deadline()
    client, hooks = type(own), own.event_hooks
    responding = [*hooks.get("response", []), _drop_retry_headers, refuse_redirect]

    def make() -> Any:
        made = client(
            event_hooks=hooks | {"response": responding},
            follow_redirects=True,
            timeout=TIMEOUTS,
            mounts=past_proxies(),
        )
        keep_deadline(deadline, made)
        return made

    set_client_factory(make)
    return deadline


def _drop_retry_headers(response: Any) -> None:
    """Remove headers that make the client sleep; without them it sleeps a few seconds at most."""
    for name in ("Retry-After", "RateLimit"):
        response.headers.pop(name, None)


def _as_hub_error(error: BaseException, token: str) -> HubError:
    """Convert an error of huggingface_hub, which may be the cause of another error."""
    while getattr(error, "response", None) is None:
        if error.__cause__ is None:
            return _connection_error(error)
        error = error.__cause__
    answered: Any = error
    status = int(answered.response.status_code)
    converted = _status_error(status, _reason(getattr(answered, "server_message", None) or "", token))
    converted.status = status
    return converted


def _connection_error(error: BaseException) -> HubUnavailable:
    kind = type(error).__name__
    if isinstance(error, OSError) or type(error).__module__.startswith("http"):
        return HubUnavailable(f"the hub cannot be reached ({kind})")
    return HubUnavailable(f"the hub sent an invalid response ({kind})")


def _status_error(status: int, reason: str) -> HubError:
    if status in _TRANSIENT or status >= 500:
        return HubUnavailable(f"the hub answered {status}")
    if status in _CONTESTED:
        return HubContested(f"the hub answered {status}: another client changes the repository")
    if status == 401:
        return HubRefused("the hub does not accept the token any more: sign in again")
    if status == 403:
        return HubRefused(f"the hub does not permit this to the owner of the token{reason}")
    return HubRefused(f"the hub answered {status}{reason}")


def _reason(message: str, token: str) -> str:
    text = " ".join(message.replace(token, "…").split()) if token else message
    return f": {text[:300]}" if text else ""


@contextmanager
def hub_failures(endpoint: str) -> Iterator[None]:
    """Convert errors of the hub at ``endpoint`` to a CollidiumError.

    Raises Unreachable without a response, Unavailable for a busy hub, Conflict where another client changes
    the same repository, Unauthenticated, Forbidden, and UpstreamError for any other rejection.
    """
    try:
        yield
    except HubError as error:
        raise _translated(error, f"{endpoint}: {error}") from None


def _translated(error: HubError, detail: str) -> CollidiumError:
    if isinstance(error, HubContested):
        return Conflict(f"{detail}; try again")
    if not isinstance(error, HubRefused):
        return Unreachable(detail) if error.status is None else Unavailable(detail)
    if error.status == 401:
        return Unauthenticated(detail)
    return Forbidden(detail) if error.status == 403 else UpstreamError(detail)


def token_owner(content: bytes) -> Identity | None:
    """Return the account in the body of a whoami response; None for an organisation's token.

    Raises ValueError for an invalid response; its message continues "the response …".
    """
    try:
        document: Any = json.loads(content)
    except (ValueError, RecursionError):
        raise ValueError("is not JSON") from None
    name = document.get("name") if isinstance(document, dict) else None
    if not isinstance(name, str):
        raise ValueError("has no usable name")
    try:
        roles = dict(_organisations(document))
        owner = Identity(
            name,
            read_only=_role(document) == "read",
            organisations=frozenset(each for each, role in roles.items() if role != "read"),
            memberships=frozenset(roles),
        )
    except ValueError:
        raise ValueError("has no usable name") from None
    # An organisation's token belongs to no single account.
    return owner if document.get("type", "user") == "user" else None


def _organisations(document: dict[str, Any]) -> Iterator[tuple[str, object]]:
    """The organisations with a valid name, and the account's role in each."""
    listed = document.get("orgs")
    for item in listed if isinstance(listed, list) else ():
        name = item.get("name") if isinstance(item, dict) else None
        if isinstance(name, str) and USERNAME.fullmatch(name):
            yield name, item.get("roleInOrg")


def _role(document: dict[str, Any]) -> object:
    """The token's role, if the hub reports one. Fine-grained tokens may or may not write."""
    auth = document.get("auth")
    token = auth.get("accessToken") if isinstance(auth, dict) else None
    return token.get("role") if isinstance(token, dict) else None
