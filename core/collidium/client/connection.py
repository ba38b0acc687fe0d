"""The server's address, credentials and timeouts of a client, and the HTTP requests made from calls."""

from __future__ import annotations

import ipaddress
import os
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import httpx

from collidium import __version__
from collidium.client.calls.call import IDEMPOTENCY_KEY, PARQUET, Call, Credential
from collidium.client.responses import PROBLEM, Response
from collidium.client.uploads import FileUpload
from collidium.errors import CollidiumError, ConfigurationError, Unauthenticated, Unreachable, UpstreamError
from collidium.hub.sources import DEFAULT_BACKEND, saved_token, sendable

Result = TypeVar("Result")

#: Scoring responds when it is done, which takes long for a large submission.
SCORING_TIMEOUT_SECONDS = 3600.0
#: Far more than any response of a server that is not a file.
LONGEST_ANSWER_BYTES = 64 * 1024**2


@dataclass(frozen=True, slots=True)
class Connection:
    """A server's address and the caller's secrets, which its repr hides."""

    backend: str
    token: str | None = field(repr=False)
    admin_token: str | None = field(repr=False)
    timeout: float

    @classmethod
    def choose(
        cls, backend: str | None, token: str | None, admin_token: str | None, timeout: float
    ) -> Connection:
        """Take what is None from the environment and the saved login."""
        address = check_backend(backend or os.environ.get("PLATFORM_BACKEND") or DEFAULT_BACKEND)
        # An empty token is not replaced: the caller must not act as another account by accident.
        if token is None:
            token = os.environ.get("HF_TOKEN") or saved_token(address)
        if admin_token is None:
            admin_token = os.environ.get("ADMIN_TOKEN")
        return cls(address, token and token.strip(), admin_token and admin_token.strip(), timeout)

    def acting_as(self, token: str) -> Connection:
        """Return the connection for another account, without the operator's token."""
        return replace(self, token=token.strip(), admin_token=None)

    @property
    def trust_environment(self) -> bool:
        """Whether to use the environment's proxies: not for loopback addresses."""
        host = httpx.URL(self.backend).host
        try:
            return not ipaddress.ip_address(host).is_loopback
        except ValueError:
            return host != "localhost"

    def request(self, call: Call[Any], upload: FileUpload | None = None) -> httpx.Request:
        """Build the HTTP request of a call. Raises Unauthenticated if the secret that it needs is missing."""
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
            extensions={"timeout": self._timeout(call).as_dict()},
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

    def _timeout(self, call: Call[Any]) -> httpx.Timeout:
        if not call.scores:
            return httpx.Timeout(self.timeout)
        return httpx.Timeout(self.timeout, read=max(self.timeout, SCORING_TIMEOUT_SECONDS))

    def read(self, call: Call[Result], received: httpx.Response, content: bytes) -> Result:
        """Decode the response of a call; raises CollidiumError."""
        response = Response(
            self.backend,
            received.status_code,
            {name.lower(): value for name, value in received.headers.items()},
            content,
            received.links.get("next", {}).get("url"),
        )
        try:
            return call.read(response)
        except CollidiumError as error:
            if response.status == 500 or (response.status > 500 and response.media_type != PROBLEM):
                error.idempotency_key = call.headers.get(IDEMPOTENCY_KEY)
            raise

    def check_size(self, size: int) -> None:
        """Raise UpstreamError if a response body has more than ``LONGEST_ANSWER_BYTES``."""
        if size > LONGEST_ANSWER_BYTES:
            raise UpstreamError(
                f"{self.backend} answered more than {LONGEST_ANSWER_BYTES // 1024**2} MiB, which is not an "
                "answer of a Collidium server: check PLATFORM_BACKEND and any proxy on the way"
            )

    def failure(self, error: httpx.RequestError, call: Call[Any]) -> CollidiumError:
        """Convert an exception of httpx."""
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
            seconds = self._timeout(call).read if isinstance(error, httpx.ReadTimeout) else self.timeout
            return Unreachable(f"{self.backend} did not answer within {seconds:g} s")
        if isinstance(error, httpx.DecodingError):
            return UpstreamError(
                f"{self.backend} answered something that cannot be decoded: {_reason(error)}"
            )
        return Unreachable(f"the connection to {self.backend} broke: {_reason(error)}")


def may_retry(call: Call[Any], error: httpx.RequestError) -> bool:
    """Whether the connection broke during a call that may be repeated; not for timeouts."""
    broken = isinstance(error, httpx.ReadError | httpx.WriteError | httpx.RemoteProtocolError)
    return broken and call.repeatable


def check_backend(address: str) -> str:
    """Validate an address and remove its trailing slash. Raises ConfigurationError."""
    try:
        url = httpx.URL(address.strip())
    except httpx.InvalidURL:
        url = httpx.URL("")
    if url.scheme not in {"http", "https"} or not url.host or url.query or url.fragment:
        raise ConfigurationError("PLATFORM_BACKEND must be an address like http://127.0.0.1:8000")
    if url.userinfo:
        # Messages show the address.
        raise ConfigurationError("PLATFORM_BACKEND must not hold a user name or a password")
    return str(url).rstrip("/")


def _reason(error: httpx.RequestError) -> str:
    return str(error) or type(error).__name__


def version_mismatch(server: str) -> str | None:
    """Compare the version of a server with that of this client.

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
