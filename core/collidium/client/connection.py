"""Which server, with which secrets, how patiently: what both clients are made from."""

from __future__ import annotations

import ipaddress
import os
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import httpx

from collidium import __version__
from collidium.client.answers import PROBLEM, Answer
from collidium.client.calls.call import IDEMPOTENCY_KEY, PARQUET, Call, Credential
from collidium.client.uploads import Upload
from collidium.errors import CollidiumError, ConfigurationError, Unauthenticated, Unreachable, UpstreamError
from collidium.hub.sources import DEFAULT_BACKEND, saved_token, sendable

Result = TypeVar("Result")

#: Scoring answers when it is done; a large submission takes its time.
SCORING_TIMEOUT_SECONDS = 3600.0
#: Far more than a server answers; files are not fetched by calls.
LONGEST_ANSWER_BYTES = 64 * 1024**2


@dataclass(frozen=True, slots=True)
class Connection:
    """A server's address and the caller's secrets, which never show in a repr."""

    backend: str
    token: str | None = field(repr=False)
    admin_token: str | None = field(repr=False)
    timeout: float

    @classmethod
    def choose(
        cls, backend: str | None, token: str | None, admin_token: str | None, timeout: float
    ) -> Connection:
        """Fill in what is not given from the environment and the saved login."""
        address = check_backend(backend or os.environ.get("PLATFORM_BACKEND") or DEFAULT_BACKEND)
        # An empty token was given all the same: its owner must not act as another account.
        if token is None:
            token = os.environ.get("HF_TOKEN") or saved_token(address)
        if admin_token is None:
            admin_token = os.environ.get("ADMIN_TOKEN")
        return cls(address, token and token.strip(), admin_token and admin_token.strip(), timeout)

    def acting_as(self, token: str) -> Connection:
        """The same server for an account, without an operator's secret."""
        return replace(self, token=token.strip(), admin_token=None)

    @property
    def trust_environment(self) -> bool:
        """Whether proxies of the environment apply: never on the way to this very machine."""
        host = httpx.URL(self.backend).host
        try:
            return not ipaddress.ip_address(host).is_loopback
        except ValueError:
            return host != "localhost"

    def request(self, call: Call[Any], upload: Upload | None = None) -> httpx.Request:
        """The call as it goes out. Raises Unauthenticated when it lacks the secret it needs."""
        headers = {
            "User-Agent": f"collidium/{__version__}",
            "Accept": "application/json",
            **self._secret(call),
        }
        content: dict[str, Any] = {"json": call.json}
        if upload is not None and call.form is not None:
            file = ("file", upload.file, "application/octet-stream")
            content = {"data": dict(call.form), "files": {call.part: file}}
        elif upload is not None:
            content = {"content": upload.chunks()}
            headers |= {"Content-Type": PARQUET, "Content-Length": str(upload.size - upload.offset)}
        return httpx.Request(
            call.method,
            self.backend + call.path,
            params=call.query or None,
            headers=headers | dict(call.headers),
            **content,
            extensions={"timeout": self._patience(call).as_dict()},
        )

    def _secret(self, call: Call[Any]) -> dict[str, str]:
        if call.credential is Credential.TOKEN:
            if not self.token:
                raise Unauthenticated("no token: run `collidium login`, or set HF_TOKEN")
            return {"Authorization": f"Bearer {sendable(self.token, 'the hub token')}"}
        if call.credential is Credential.ADMIN:
            if not self.admin_token:
                raise Unauthenticated("no admin token: set ADMIN_TOKEN", challenge="X-Admin-Token")
            return {"X-Admin-Token": sendable(self.admin_token, "the admin token")}
        return {}

    def _patience(self, call: Call[Any]) -> httpx.Timeout:
        """How long to wait for each step; scoring may take longer than any other answer."""
        if not call.scores:
            return httpx.Timeout(self.timeout)
        return httpx.Timeout(self.timeout, read=max(self.timeout, SCORING_TIMEOUT_SECONDS))

    def read(self, call: Call[Result], response: httpx.Response, content: bytes) -> Result:
        """The call's result from a response and its body; raises CollidiumError."""
        answer = Answer(
            self.backend,
            response.status_code,
            {name.lower(): value for name, value in response.headers.items()},
            content,
            response.links.get("next", {}).get("url"),
        )
        try:
            return call.read(answer)
        except CollidiumError as error:
            if answer.status == 500 or (answer.status > 500 and answer.media_type != PROBLEM):
                error.idempotency_key = call.headers.get(IDEMPOTENCY_KEY)
            raise

    def refuse_endless(self, size: int) -> None:
        """Raise UpstreamError when this many bytes of a body are more than an answer has."""
        if size > LONGEST_ANSWER_BYTES:
            raise UpstreamError(
                f"{self.backend} answered more than {LONGEST_ANSWER_BYTES // 1024**2} MiB, which is not an "
                "answer of a Collidium server: check PLATFORM_BACKEND and any proxy on the way"
            )

    def failure(self, error: httpx.RequestError, call: Call[Any]) -> CollidiumError:
        """What a failed exchange means to the caller."""
        failed = self._failure(error, call)
        if not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
            failed.idempotency_key = call.headers.get(IDEMPOTENCY_KEY)
        return failed

    def _failure(self, error: httpx.RequestError, call: Call[Any]) -> CollidiumError:
        if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
            return Unreachable(
                f"cannot reach {self.backend}: {_reason(error)}. Is the server running (`collidium serve`), "
                "and is PLATFORM_BACKEND right?"
            )
        if isinstance(error, httpx.TimeoutException):
            seconds = self._patience(call).read if isinstance(error, httpx.ReadTimeout) else self.timeout
            return Unreachable(f"{self.backend} did not answer within {seconds:g} s")
        if isinstance(error, httpx.DecodingError):
            return UpstreamError(
                f"{self.backend} answered something that cannot be decoded: {_reason(error)}"
            )
        return Unreachable(f"the connection to {self.backend} broke: {_reason(error)}")


def worth_another_try(call: Call[Any], error: httpx.RequestError) -> bool:
    """Whether the connection broke under a call that may be sent twice; unlike a refusal or a timeout."""
    broken = isinstance(error, httpx.ReadError | httpx.WriteError | httpx.RemoteProtocolError)
    return broken and call.repeatable


def check_backend(address: str) -> str:
    """The address in its one form, without a slash at the end. Raises ConfigurationError."""
    try:
        url = httpx.URL(address.strip())
    except httpx.InvalidURL:
        url = httpx.URL("")
    if url.scheme not in {"http", "https"} or not url.host or url.query or url.fragment:
        raise ConfigurationError("PLATFORM_BACKEND must be an address like http://127.0.0.1:8000")
    if url.userinfo:
        # The address is shown in messages; a password in it would be, too.
        raise ConfigurationError("PLATFORM_BACKEND must not hold a user name or a password")
    return str(url).rstrip("/")


def _reason(error: httpx.RequestError) -> str:
    return str(error) or type(error).__name__


def version_mismatch(server: str) -> str | None:
    """Compare the version of a server with that of this program.

    Releases are compatible if their first two numbers are equal.

    Parameters
    ----------
    server : str
        Version of the server.

    Returns
    -------
    str or None
        A message if the versions are not compatible.
    """
    if _series(server) == _series(__version__):
        return None
    return f"the server runs collidium {server}, this program is {__version__}: update the older one"


def _series(version: str) -> list[str]:
    return version.split(".")[:2]
