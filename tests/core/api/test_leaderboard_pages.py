"""The cache of encoded leaderboard pages, and its limit."""

from __future__ import annotations

from pathlib import Path

import pytest

from collidium import settings
from collidium.api.answers import WrittenPage
from collidium.api.app import create_app
from collidium.api.leaderboards import PAGE_OVERHEAD, PAGES_BYTES, Pages
from collidium.api.schemas import LeaderboardQuery
from collidium.submissions.leaderboard import BoardVersion


@pytest.fixture
def pages(tmp_path: Path) -> Pages:
    """The pages of an application, none yet."""
    app = create_app(settings.load(data_dir=tmp_path))
    kept: Pages = app.extensions["collidium.leaderboard_pages"]
    return kept


def after(number: int) -> LeaderboardQuery:
    """A page of its own for each number."""
    return LeaderboardQuery(limit=1000, cursor=str(number))


@pytest.mark.parametrize("length", [0, 100_000, PAGES_BYTES // 3])
def test_pages_of_any_size_stay_within_the_memory_for_all(pages: Pages, length: int) -> None:
    version = BoardVersion("tracking", "tracking", "abc", 7)
    most = PAGES_BYTES // (length + PAGE_OVERHEAD)
    first = LeaderboardQuery(limit=1000)
    pages[version, first] = WrittenPage("", None)
    for number in range(1, most + 3):
        pages[version, after(number)] = WrittenPage("x" * length, None)
        assert pages.get((version, first)), "the page that everybody asks for was dropped"
    assert (version, after(1)) not in pages
    assert (version, after(most + 2)) in pages
    assert sum(len(page.body) + PAGE_OVERHEAD for page in pages.values()) <= PAGES_BYTES
