"""A hub in a process of its own, and clients for it; fixtures for the tests of several packages."""

import signal
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from huggingface_hub import HfApi
from tests.waiting import start_announced

from collidium_plugins.local_hub import accounts
from collidium_plugins.local_hub.store import Store


def token_on(directory: Path, name: str) -> str:
    """A token of a new account of the hub there; a process for each would take a third of a second."""
    with closing(Store(directory)) as store, store.database.writing() as db:
        return accounts.make_token(db, accounts.add(db, name))


class HubServer:
    """hub_server.py on a directory; can be killed and started again on the same port."""

    def __init__(
        self,
        directory: Path,
        quota: int = 10**12,
        callback: str = "http://pages.test:8443/web/callback",
    ) -> None:
        self.directory = directory
        self.quota = quota
        #: Where those who sign in on pages are sent back to.
        self.callback = callback
        self.port = 0
        self._tokens: dict[str, str] = {}
        self.start()

    def start(self) -> None:
        script = Path(__file__).with_name("plugins") / "hub_server.py"
        command = [sys.executable, str(script), str(self.directory), str(self.port), str(self.quota)]
        command.append(self.callback)
        self.process, line = start_announced(command)
        self.port = int(line)

    def end(self, number: int = signal.SIGTERM) -> None:
        self.process.send_signal(number)
        self.process.wait(20)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hub"

    def token(self, name: str) -> str:
        """The token of an account, made when it is first asked for."""
        if name not in self._tokens:
            self._tokens[name] = token_on(self.directory, name)
        return self._tokens[name]

    def api(self, name: str | None) -> HfApi:
        """The hub's client for an account; None: without a token."""
        return HfApi(endpoint=self.url, token=self.token(name) if name else False)

    def http(self, name: str | None = None) -> httpx.Client:
        """A plain HTTP client for an account; None: without a token."""
        headers = {"Authorization": f"Bearer {self.token(name)}"} if name else {}
        return httpx.Client(base_url=self.url, headers=headers, timeout=30, trust_env=False)

    @property
    def blobs(self) -> list[Path]:
        return sorted((self.directory / "blobs").glob("*/*"))

    @property
    def uploads(self) -> list[Path]:
        """Unfinished files; not the xorbs of uploads by Xet, which stay for a while."""
        return sorted(path for path in (self.directory / "uploads").glob("*") if path.is_file())


@pytest.fixture(scope="session")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubServer]:
    """A hub that tests share; each makes repositories of its own."""
    server = HubServer(tmp_path_factory.mktemp("hub"))
    yield server
    server.end()


@pytest.fixture
def own_hub(tmp_path: Path) -> Iterator[HubServer]:
    """A hub for one test, to be killed or looked into."""
    server = HubServer(tmp_path / "hub")
    yield server
    if server.process.poll() is None:
        server.end()
