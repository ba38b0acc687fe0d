"""Lists of models from a hub on loopback with scripted responses."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from tests.stubs import Service, response
from tests.waiting import until

from collidium.errors import TooManyRequests, Unavailable, UnknownCursor, UpstreamError
from collidium.hub.models import PAGES_OF_TASK, QUERIES_BURST, ModelQuery, ModelZoo
from collidium.records import HubModel

GOOD: dict[str, Any] = {"id": "ada/helix", "tags": ["collidium"]}


class FakeHub(Service):
    """Answers every list with ``status``, ``body`` and the headers ``link``."""

    def __init__(self) -> None:
        super().__init__()
        self.status, self.body, self.link = 200, json.dumps([GOOD]), list[str]()
        self.asked: list[list[tuple[str, str]]] = []

    async def respond(self, head: bytes) -> bytes:
        self.asked.append(parse_qsl(urlsplit(head.split()[1].decode()).query))
        await self.gate.wait()
        return response(self.status, self.body, *self.link)


@pytest.fixture
async def hub() -> AsyncIterator[FakeHub]:
    async with FakeHub().running() as hub:
        yield hub


@pytest.fixture
async def zoo(hub: FakeHub) -> AsyncIterator[ModelZoo]:
    zoo = ModelZoo(f"{hub.url}/hub", "collidium")
    yield zoo
    await zoo.close()


async def listed(zoo: ModelZoo, hub: FakeHub, *items: object) -> tuple[HubModel, ...]:
    hub.body = json.dumps(items)
    return (await zoo.models(ModelQuery())).models


async def test_queries_request_the_tag_and_few_fields(zoo: ModelZoo, hub: FakeHub) -> None:
    await zoo.models(ModelQuery(search="he", tag="gnn", task="jets", limit=1000))
    (query,) = hub.asked
    assert [value for name, value in query if name == "filter"] == ["collidium", "gnn"]
    assert dict(query)["search"] == "he"
    assert dict(query)["limit"] == "200"
    assert "siblings" not in dict(query).values()


async def test_models_of_a_task_are_found_by_both_tags(zoo: ModelZoo, hub: FakeHub) -> None:
    tags = {
        "a/a": ["tracking"],
        "b/b": ["collidium-task:tracking"],
        "c/c": ["collidium-task:jets"],
        "d/d": [],
    }
    hub.body = json.dumps([GOOD | {"id": name, "tags": ["collidium", *own]} for name, own in tags.items()])
    found = await zoo.models(ModelQuery(task="tracking"))
    assert [model.model_repo for model in found.models] == ["a/a", "b/b"]
    assert (await zoo.models(ModelQuery(task="anomaly"))).models == ()


async def test_pages_without_a_model_of_the_task_are_passed(zoo: ModelZoo, hub: FakeHub) -> None:
    hub.body = json.dumps([GOOD | {"tags": ["collidium"]}])
    hub.link = [f'Link: <{hub.url}/hub/api/models?cursor=next>; rel="next"']
    page = await zoo.models(ModelQuery(task="tracking"))
    assert (page.models, page.cursor, len(hub.asked)) == ((), "next", PAGES_OF_TASK)


async def test_equal_queries_share_one_response(zoo: ModelZoo, hub: FakeHub) -> None:
    hub.gate.clear()
    waiting = [asyncio.create_task(zoo.models(ModelQuery())) for _ in range(20)]
    await until(lambda: len(hub.asked) == 1)
    waiting[0].cancel()
    hub.gate.set()
    answers = await asyncio.gather(*waiting[1:])
    assert {model.model_repo for answer in answers for model in answer.models} == {"ada/helix"}
    await zoo.models(ModelQuery())
    assert len(hub.asked) == 1
    await zoo.models(ModelQuery(search="other"))
    assert len(hub.asked) == 2


async def test_queries_are_rate_limited_per_address(zoo: ModelZoo, hub: FakeHub) -> None:
    async def refused(search: str, address: str) -> bool:
        try:
            await zoo.models(ModelQuery(search=search), address)
        except TooManyRequests as error:
            return int(error.headers["Retry-After"]) > 0
        return False

    refusals = [await refused(str(number), "192.0.2.1") for number in range(QUERIES_BURST + 10)]
    assert any(refusals)
    assert not any(refusals[:QUERIES_BURST])
    assert not await refused("0", "192.0.2.1"), "an answer that is known costs nothing"
    assert not await refused("new", "192.0.2.2")


async def test_errors_are_not_cached(zoo: ModelZoo, hub: FakeHub) -> None:
    hub.status = 503
    with pytest.raises(Unavailable):
        await zoo.models(ModelQuery())
    hub.status = 200
    assert len((await zoo.models(ModelQuery())).models) == 1


@pytest.mark.parametrize(
    "item",
    [
        GOOD | {"tags": ["other"]},
        GOOD | {"tags": None},
        GOOD | {"tags": "collidium"},
        GOOD | {"private": True},
        GOOD | {"disabled": True},
        GOOD | {"id": None},
        GOOD | {"id": "helix"},
        GOOD | {"id": "ada/../admin"},
        GOOD | {"id": "javascript:alert(1)"},
        GOOD | {"id": 'ada/"onclick='},
        GOOD | {"id": "a" * 97 + "/helix"},
        ["ada/helix"],
        None,
    ],
)
async def test_hidden_and_invalid_models_are_left_out(zoo: ModelZoo, hub: FakeHub, item: object) -> None:
    assert [model.model_repo for model in await listed(zoo, hub, item, GOOD | {"id": "ada/other"})] == [
        "ada/other"
    ]


async def test_untrusted_text_is_one_visible_line(zoo: ModelZoo, hub: FakeHub) -> None:
    (model,) = await listed(
        zoo,
        hub,
        GOOD
        | {
            "tags": ["collidium", "a\u202eb", " \x00 ", "x" * 5000, "a\u202eb", 7, *map(str, range(100))],
            "cardData": {"description": "one\r\n\ttwo\x1b[31m \ud83d three " + "w" * 10_000},
            "library_name": {"no": "text"},
        },
    )
    assert model.tags[:2] == ("ab", "x" * 99 + "…")
    assert len(model.tags) < 50
    assert model.description is not None
    assert model.description.startswith("one two[31m three www")
    assert len(model.description) == 300
    assert model.library is None


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        ("likes", 12, 12),
        ("likes", -1, None),
        ("likes", True, None),
        ("likes", 10**40, None),
        ("downloads", "many", None),
        ("lastModified", "2026-01-02T03:04:05.000Z", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("lastModified", "2026-01-02T03:04:05", None),
        ("lastModified", "0001-01-01T00:00:00+23:00", None),
        ("lastModified", 5, None),
        ("cardData", "text", None),
    ],
)
async def test_invalid_numbers_and_times_are_left_out(
    zoo: ModelZoo, hub: FakeHub, name: str, value: object, kept: object
) -> None:
    (model,) = await listed(zoo, hub, GOOD | {name: value})
    field = {"lastModified": "updated_at", "cardData": "description"}.get(name, name)
    assert getattr(model, field) == kept


async def test_invalid_task_names_are_left_out(zoo: ModelZoo, hub: FakeHub) -> None:
    tags = ["collidium", *(f"collidium-task:{name}" for name in ("tracking", "", "../x", "Jets", "a b"))]
    (model,) = await listed(zoo, hub, GOOD | {"tags": tags})
    assert (model.tasks, model.tags) == (("tracking",), ())


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (500, "", Unavailable),
        (429, "", Unavailable),
        (302, "", UpstreamError),
        (404, "", UpstreamError),
        (200, "<html>", UpstreamError),
        (200, "{}", UpstreamError),
        (200, "[" * 100_000, UpstreamError),
        (200, f'["{"x" * 9_000_000}"]', UpstreamError),
    ],
)
async def test_errors_of_the_hub_are_distinguished(
    zoo: ModelZoo, hub: FakeHub, status: int, body: str, error: type[Exception]
) -> None:
    hub.status, hub.body = status, body
    with pytest.raises(error, match="hub"):
        await zoo.models(ModelQuery())


async def test_a_hub_that_is_away_or_silent_is_unavailable(hub: FakeHub) -> None:
    away = ModelZoo("http://127.0.0.1:1/hub", "collidium")
    silent = ModelZoo(f"{hub.url}/hub", "collidium", timeout_seconds=0.05)
    hub.gate.clear()
    for zoo in (away, silent):
        with pytest.raises(Unavailable, match="try again later"):
            await zoo.models(ModelQuery())
        await zoo.close()


@pytest.mark.parametrize(
    ("link", "cursor"),
    [
        (['Link: <https://elsewhere.example/steal?cursor=next&limit=9>; rel="next"'], "next"),
        (['Link: </api/models?page=2>; rel="next"'], None),
        (['Link: <http://[>; rel="next"'], None),
        ([f'Link: </x?cursor={"c" * 513}>; rel="next"'], None),
        ([], None),
    ],
)
async def test_only_the_cursor_of_a_next_link_is_used(
    zoo: ModelZoo, hub: FakeHub, link: list[str], cursor: str | None
) -> None:
    hub.link = link
    assert (await zoo.models(ModelQuery())).cursor == cursor


async def test_an_unknown_cursor_is_an_error_of_the_caller(zoo: ModelZoo, hub: FakeHub) -> None:
    hub.status = 400
    with pytest.raises(UnknownCursor):
        await zoo.models(ModelQuery(cursor="made-up"))
    with pytest.raises(UpstreamError):
        await zoo.models(ModelQuery())
