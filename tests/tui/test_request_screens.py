"""How Requests, one request and the question before its cancellation look."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from msgspec.structs import replace
from tests.tui.consoles import LARGE, SMALL, answers, matches, shows, signed_in
from textual.pilot import Pilot

from collidium.client import AsyncClient, Moment, OperatedRequest, OutputFile, Page
from collidium.testing.server import ServerProcess
from collidium_tui.screen import ListData
from collidium_tui.screens.requests import Listed
from collidium_tui.screens.requests.detail import RequestScreen

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
WHY = "the hub is down: 503 (tried 7 times) [bold]\x1b[31m"
RUNNING = OperatedRequest(
    request_id="0c62a9ba44bd4ff18f0f73a8de5c3c2d",
    hub_username="ada",
    channel="higgs_portal",
    events=100_000,
    pileup=200,
    seed=42,
    state="running",
    created_at=NOON - timedelta(minutes=90),
    started_at=NOON - timedelta(minutes=80),
    credits_charged=Decimal("1250.5"),
    credits_refunded=Decimal(0),
    estimated_node_hours=Decimal("1250.5"),
    node_hours=Decimal("1250.5"),
    reason=WHY,
    runner="slurm",
    pipeline_version="pipeline-v0.1.0",
    timeline=(
        Moment(NOON - timedelta(minutes=90), "queued"),
        Moment(NOON - timedelta(minutes=80), "running"),
        Moment(NOON - timedelta(minutes=5), "running", WHY),
    ),
    runner_handle="8412973;cluster",
    step="publish",
    due_at=NOON + timedelta(seconds=40),
    attempts=7,
)
FAILED = replace(
    RUNNING,
    request_id="f" * 32,
    hub_username="日本語" * 9,
    channel="[red]ttbar[/]",
    state="failed",
    created_at=NOON - timedelta(days=3),
    finished_at=NOON - timedelta(days=2),
    credits_refunded=Decimal("1250.5"),
    reason="the job ran out of memory",
    step="",
    due_at=None,
    attempts=0,
)
CANCELLING = replace(RUNNING, request_id="a" * 32, cancel_requested=True, state="queued", events=1, pileup=0)
FILES = (
    OutputFile("data/higgs_portal_pu200_particles/train-00000-of-00001.parquet", "e" * 64, 123456789, 100000),
    OutputFile("data/higgs_portal_pu200_tracks/train-00000-of-00001.parquet", "d" * 64, 1234567, 100000),
)


async def look_into(pilot: Pilot[None], request: OperatedRequest) -> None:
    """Open the detail of a request that the server is said to have."""
    screen = RequestScreen(request.request_id)

    async def fetch(client: AsyncClient) -> ListData[OperatedRequest]:
        table = screen.active_table
        return ListData(request, table, Page(request.timeline if table.of == "timeline entries" else FILES))

    screen.fetch = fetch
    pilot.app.push_screen(screen)


@pytest.mark.parametrize("size", [SMALL, LARGE])
async def test_the_list(backend: ServerProcess, size: tuple[int, int]) -> None:
    async with signed_in(backend, "Requests", size=size, now=lambda: NOON) as pilot:
        await answers(pilot, Listed(Page((RUNNING, CANCELLING, FAILED), "more")))
        await matches(pilot, f"requests-{size[0]}")


@pytest.mark.parametrize("size", [SMALL, LARGE])
async def test_one_request(backend: ServerProcess, size: tuple[int, int]) -> None:
    async with signed_in(backend, "Requests", size=size, now=lambda: NOON) as pilot:
        await look_into(pilot, RUNNING)
        await shows(pilot, "3 timeline entries", "8412973", "Next list")
        await matches(pilot, f"request-{size[0]}")


@pytest.mark.parametrize("size", [SMALL, LARGE])
async def test_the_files_of_one_that_ended(backend: ServerProcess, size: tuple[int, int]) -> None:
    async with signed_in(backend, "Requests", size=size, now=lambda: NOON) as pilot:
        await look_into(pilot, FAILED)
        await shows(pilot, "timeline entries")
        await pilot.press("l")
        await shows(pilot, "2 output files", "8412973", "Next list")
        await matches(pilot, f"request-files-{size[0]}")


@pytest.mark.parametrize("size", [SMALL, LARGE])
async def test_the_question_before_a_cancellation(backend: ServerProcess, size: tuple[int, int]) -> None:
    async with signed_in(backend, "Requests", size=size, now=lambda: NOON) as pilot:
        await answers(pilot, Listed(Page((RUNNING,))))
        await pilot.press("x")
        await shows(pilot, "Cancel request")
        await matches(pilot, f"cancel-{size[0]}")
        await pilot.press("escape")
