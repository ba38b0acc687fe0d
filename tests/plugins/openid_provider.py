"""An OpenID provider of other people's, in a process of its own: oidc-provider-mock, on authlib's server."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import unescape
from urllib.parse import urljoin

import httpx

#: It uses what authlib will drop, so not within our process, where warnings are errors.
_SERVE = """
import oidc_provider_mock, sys, werkzeug.serving
server = werkzeug.serving.make_server("127.0.0.1", int(sys.argv[1]), oidc_provider_mock.app(), threaded=True)
print(server.server_port, flush=True)
server.serve_forever()
"""


@dataclass(frozen=True)
class OpenIDProvider:
    """Every user signs in at ``issuer`` as the subject they name."""

    issuer: str

    def add(self, subject: str, **claims: object) -> None:
        """Give a subject claims."""
        httpx.put(f"{self.issuer}/users/{subject}", json=claims, trust_env=False).raise_for_status()

    def agree(self, address: str, subject: str) -> str:
        """Fill in the provider's form at an address; where it leads back to."""
        with httpx.Client(trust_env=False) as browser:
            page = browser.get(address)
            assert page.status_code == 200, page.text
            found = re.search(r'<form[^>]* action="([^"]*)"', page.text)
            action = urljoin(address, unescape(found[1])) if found else address
            answer = browser.post(action, data={"sub": subject})
        assert answer.status_code in {302, 303}, answer.text
        return answer.headers["Location"]


@contextmanager
def serving(port: int = 0) -> Iterator[OpenIDProvider]:
    """The provider, at a port."""
    command = [sys.executable, "-W", "ignore", "-c", _SERVE, str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            yield OpenIDProvider(f"http://127.0.0.1:{int(process.stdout.readline())}")
        finally:
            process.kill()
