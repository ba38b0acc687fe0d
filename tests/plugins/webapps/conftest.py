"""A platform with its web apps, and people who visit it with a browser.

Modules share one server (``web``), but for those that name settings of theirs in ``WEB_ENVIRONMENT``. All
tests share one browser; each has a profile of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect
from tests.core.api.conftest import import_truth
from tests.hub import token_on
from tests.needs import Needs
from tests.sandboxes import allowance

from collidium.testing import browser as browsing
from collidium.testing.browser import PATIENCE, Watch, chromium
from collidium.testing.server import ServerProcess

SignIn = Callable[[Page, str], None]


@pytest.fixture(scope="session")
def shared_web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server on embedded defaults: SQLite, a local hub, the mock runner, the web apps."""
    environment = {
        "PLATFORM_CORS_ORIGINS": "http://pages.example",
        "PLATFORM_IDENTITY_CACHE_SECONDS": "0",
        "PLATFORM_SIGN_INS_PER_MINUTE": "1000",
        **allowance(),
    }
    with ServerProcess(tmp_path_factory.mktemp("web"), env=environment) as server:
        yield server


@pytest.fixture(scope="session")
def shared_truth(shared_web: ServerProcess) -> None:
    """The shared server takes predictions for the task tracking."""
    import_truth(shared_web)


@pytest.fixture(scope="module")
def web(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """The server of the module."""
    environment: Mapping[str, str] | None = getattr(request.module, "WEB_ENVIRONMENT", None)
    if environment is None:
        yield request.getfixturevalue("shared_web")
        return
    with ServerProcess(tmp_path_factory.mktemp("web"), env=environment) as server:
        yield server


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests with the browser go last: while it is open, no other test could run an event loop."""
    items.sort(key=lambda item: "browser" in getattr(item, "fixturenames", ()))


@pytest.fixture(scope="session")
def browser(needs: Needs) -> Iterator[Browser]:
    needs("chromium")
    expect.set_options(timeout=PATIENCE)
    with chromium() as browser:
        yield browser


@pytest.fixture
def context(browser: Browser, web: ServerProcess) -> Iterator[BrowserContext]:
    """A profile that was not used before, at home on the server's address."""
    with browser.new_context(base_url=web.base_url, viewport={"width": 1280, "height": 800}) as context:
        context.set_default_timeout(PATIENCE)
        yield context


@pytest.fixture
def watch(context: BrowserContext, web: ServerProcess) -> Watch:
    """What went wrong on the pages of the profile, so far."""
    return Watch(context, web.base_url)


@pytest.fixture
def page(context: BrowserContext, watch: Watch) -> Iterator[Page]:
    """A page; the test fails when anything went wrong on it that ``watch`` does not allow."""
    yield context.new_page()
    assert watch.problems == []


@pytest.fixture(scope="module")
def token(web: ServerProcess) -> Callable[[str], str]:
    """The hub token of an account, which is made when it is first asked for."""
    return partial(_token, web.data_dir / "hub")


@cache
def _token(hub: Path, name: str) -> str:
    return token_on(hub, name)


@pytest.fixture
def sign_in(token: Callable[[str], str]) -> SignIn:
    """Signs the account of that name in on a page."""
    return lambda page, name: browsing.sign_in(page, token(name))
