"""``huggingface_hub`` for a server: bounded waits, errors of two kinds, no tokens on disk; and whoami."""

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
from collidium.runtime.http_client import past_proxies
from collidium.runtime.waiting import in_thread

if TYPE_CHECKING:
    from huggingface_hub import HfApi

    from collidium.runtime.network import Deadline

T = TypeVar("T")

#: Seconds to connect, to wait for the next bytes, to send some, and for a connection that is free.
TIMEOUTS: Final = (10.0, 60.0, 60.0, 60.0)
#: How long a call may take with all that the client itself tries again.
CALL_SECONDS: Final = 120.0
#: Bytes a second; slower transfers are given up.
SLOWEST: Final = 1_000_000

#: Too busy; waiting may help.
_PASSING: Final = frozenset({408, 425, 429})
#: Another client changed, removed or holds the same thing; waiting may help here, too.
_CONTESTED: Final = frozenset({404, 409, 412, 423})
#: Setting up closes the client there was, which must not be in use.
_preparing: Final = threading.Lock()


class HubError(RuntimeError):
    """A call to the hub failed; the message holds no secret."""

    #: What the hub answered with; None where it did not answer.
    status: int | None = None


class HubUnavailable(HubError):
    """The hub cannot be reached, is busy or gave an invalid response: trying later may work."""


class HubContested(HubUnavailable):
    """Another client changes or removes the same thing on the hub: trying later may work."""


class HubRefused(HubError):
    """The hub refuses the call for good; the message says why."""


@dataclass(frozen=True, slots=True)
class Hub:
    """The hub at ``endpoint`` as the owner of a token sees it. The token is kept in memory alone."""

    endpoint: str
    token: str = field(repr=False)

    async def ask(self, function: Callable[[HfApi], T], seconds: float = CALL_SECONDS) -> T:
        """Call ``function`` with a client in a thread and return its result.

        Raises :class:`HubUnavailable`, also after ``seconds``, and :class:`HubRefused`.
        """
        from collidium.runtime import (
            metrics,  # takes 20 ms, and the client library's users call no hub at once
        )

        with metrics.timed(metrics.HUB, metrics.HUB_FAILURES, "client", HubUnavailable):
            return await self._ask_in_time(function, seconds)

    async def _ask_in_time(self, function: Callable[[HfApi], T], seconds: float) -> T:
        try:
            async with asyncio.timeout(seconds):
                # A thread of its own: a slow hub takes none from the rest of the process.
                return await in_thread(lambda: self._ask(function, seconds), "hub")
        except TimeoutError:
            raise HubUnavailable(f"the hub did not finish within {seconds:g} s") from None
        except Unavailable as error:
            raise HubUnavailable(error.detail) from error

    def _ask(self, function: Callable[[HfApi], T], seconds: float) -> T:
        # Ends the thread, too, where an answer drips; after the caller, whose message says what happened.
        prepare().at = monotonic() + seconds + 1
        from huggingface_hub import HfApi

        # False, not None: a token that lies on this machine must not stand in for one that is missing.
        api = HfApi(endpoint=self.endpoint, token=self.token or False)
        try:
            return function(api)
        except HubError:
            raise
        except Exception as error:
            # The errors of whatever HTTP library this version of the hub's client has; their texts hold
            # signed addresses, so they go no further.
            raise _sorted(error, self.token) from None


def transfer_seconds(size_bytes: int) -> float:
    """How long sending or receiving a file may take."""
    return CALL_SECONDS + size_bytes / SLOWEST


def prepare() -> Deadline:
    """Set up huggingface_hub for this process, if possible before its first import.

    Returns the deadline of the calling thread's calls.
    """
    with _preparing:
        return _prepare()


@functools.cache
def _prepare() -> Deadline:
    # Read at its import: no Xet, which not every hub speaks, no news about itself to its makers, no bars.
    os.environ["HF_HUB_OFFLINE"] = "0"
    os.environ["HF_HUB_DISABLE_XET"] = "1"
    os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
    os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
    from huggingface_hub import get_session, set_client_factory
    from huggingface_hub.utils import logging as its_logging

    # Its warnings name signed addresses; what went wrong is in its errors.
    its_logging.set_verbosity(logging.ERROR)
    from collidium.runtime.addresses import refuse_redirect
    from collidium.runtime.network import Deadline, keep_deadline

    own, deadline = get_session(), Deadline()
    client, hooks = type(own), own.event_hooks

    def make() -> Any:
        made = client(
            event_hooks=hooks | {"response": [*hooks.get("response", []), _forget_waits, refuse_redirect]},
            follow_redirects=True,
            timeout=TIMEOUTS,
            mounts=past_proxies(),
        )
        keep_deadline(deadline, made)
        return made

    set_client_factory(make)
    return deadline


def _forget_waits(response: Any) -> None:
    """Remove headers that make the client sleep; without them it waits at most some seconds."""
    for name in ("Retry-After", "RateLimit"):
        response.headers.pop(name, None)


def _sorted(error: Exception, token: str) -> HubError:
    answered = _answered(error)
    made = _kind(error, answered, token)
    made.status = None if answered is None else int(answered.response.status_code)
    return made


def _kind(error: Exception, answered: Any, token: str) -> HubError:
    if answered is None:
        first = _first(error)
        kind = type(first).__name__
        if isinstance(first, OSError) or type(first).__module__.startswith("http"):
            return HubUnavailable(f"the hub cannot be reached ({kind})")
        return HubUnavailable(f"the hub's answer cannot be understood ({kind})")
    status = int(answered.response.status_code)
    if status in _PASSING or status >= 500:
        return HubUnavailable(f"the hub answered {status}")
    if status in _CONTESTED:
        return HubContested(f"the hub answered {status}: the repository changes at the same time")
    if status == 401:
        return HubRefused("the hub does not accept the token any more: sign in again")
    reason = _line(getattr(answered, "server_message", None) or "", token)
    if status == 403:
        return HubRefused(f"the hub does not let the token's owner do this{reason}")
    return HubRefused(f"the hub refused it with {status}{reason}")


def _answered(error: BaseException | None) -> Any:
    """The first of an error and its causes that has the hub's answer."""
    while error is not None and getattr(error, "response", None) is None:
        error = error.__cause__
    return error


def _first(error: BaseException) -> BaseException:
    """The first cause of an error; the hub's client wraps errors of uploads."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def _line(message: str, token: str) -> str:
    text = " ".join(message.replace(token, "…").split()) if token else message
    return f": {text[:300]}" if text else ""


@contextmanager
def hub_failures(endpoint: str) -> Iterator[None]:
    """Raise errors of the hub at ``endpoint`` as a CollidiumError.

    Unreachable where it does not answer, Unavailable where it cannot for now, Conflict where another
    client was faster, Unauthenticated, Forbidden, and UpstreamError for every other refusal.
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
    """The account of a token, by the body of a whoami response; None for an organisation's token.

    Raises ValueError that says what is wrong with the response.
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
    """The organisations that the token shows, and the account's role there; what is no name is left out."""
    listed = document.get("orgs")
    for item in listed if isinstance(listed, list) else ():
        name = item.get("name") if isinstance(item, dict) else None
        if isinstance(name, str) and USERNAME.fullmatch(name):
            yield name, item.get("roleInOrg")


def _role(document: dict[str, Any]) -> object:
    """The token's role if the hub reports one: fine-grained tokens may or may not write."""
    auth = document.get("auth")
    token = auth.get("accessToken") if isinstance(auth, dict) else None
    return token.get("role") if isinstance(token, dict) else None
