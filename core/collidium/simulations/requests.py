"""Requests as their owners and operators see them: found, listed, watched, cancelled, forgotten."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Collection
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace
from tortoise.expressions import Subquery

from collidium import operations, records
from collidium.contracts.runner import RunnerError
from collidium.database import transactional
from collidium.database.statements import RowByKey
from collidium.errors import Forbidden, NotFound
from collidium.simulations import totals, transitions
from collidium.simulations.models import HistoryLine, Reader, SimulationRequest, State, StoredPart
from collidium.simulations.output import discard, storage_key
from collidium.simulations.output import sweep_parts as sweep_parts
from collidium.simulations.transitions import operator_view, view

if TYPE_CHECKING:
    from collidium.accounts import AccountView
    from collidium.platform import Platform

REQUEST_ID: Final = re.compile(r"[0-9a-f]{32}")
_by_id: Final = RowByKey(SimulationRequest, "request_id")

logger = logging.getLogger(__name__)

#: The time that a runner has to report progress.
_PROGRESS_SECONDS: Final = 1.0


async def find(request_id: str, account_id: int | None = None) -> records.SimulationRequest:
    """A request with its timeline, as ``account_id`` may see it; None: as its owner does.

    Raises NotFound where there is none, and where the account neither ordered it nor was answered with it.
    """
    return view(*await _with_timeline(request_id, account_id))


async def find_as_operator(request_id: str) -> records.OperatedRequest:
    """Any request with its timeline, its job and what is done next for it. Raises NotFound."""
    return operator_view(*await _with_timeline(request_id, None))


async def cancel(platform: Platform, request_id: str, account: AccountView) -> records.SimulationRequest:
    """Have the caller's own request cancelled. Raises NotFound, Forbidden and Conflict."""
    row = await visible(request_id, account.id)
    if row.account_id != account.id:
        raise Forbidden("only who ordered it can cancel a request")
    return await transitions.ask_to_cancel(request_id, "its owner", platform.settings)


@transactional
async def cancel_as_operator(
    platform: Platform, request_id: str, *, actor: str, http_request_id: str
) -> records.SimulationRequest:
    """Have any request cancelled. Raises NotFound and Conflict."""
    await visible(request_id, None)
    cancelled = await transitions.ask_to_cancel(request_id, "an operator", platform.settings)
    await operations.record(actor, "cancel", request_id, {"state": cancelled.state}, http_request_id)
    return cancelled


async def list_requests(
    *,
    limit: int,
    before: int | None = None,
    account_id: int | None = None,
    states: Collection[State] = (),
    channel: str | None = None,
) -> list[tuple[int, records.SimulationRequest]]:
    """Up to ``limit`` requests with their serial numbers, newest first, those with one below ``before``."""
    query = SimulationRequest.all()
    if before is not None:
        query = query.filter(id__lt=before)
    if account_id is not None:
        query = query.filter(account_id=account_id)
    if states:
        query = query.filter(state__in=list(states))
    if channel is not None:
        query = query.filter(channel=channel)
    # The files of a million events are a megabyte.
    listed = SimulationRequest._meta.db_fields - {"output"}  # noqa: SLF001 -- Tortoise has no other way
    return [(row.id, view(row)) for row in await query.order_by("-id").limit(limit).only(*listed)]


async def ordered_by(account_id: int) -> tuple[int, tuple[str, ...]]:
    """How many requests an account has, and the keys of their files in the storage."""
    rows = await SimulationRequest.filter(account_id=account_id)
    keys = (storage_key(row.request_id, file["sha256"]) for row in rows for file in row.output or ())
    return len(rows), tuple(keys)


async def stored_files() -> dict[str, str]:
    """SHA-256 of every output file in the storage, by key."""
    rows = await SimulationRequest.filter(output__not_isnull=True).values_list("request_id", "output")
    parts = await StoredPart.filter(stored=True).values_list("request__request_id", "files")
    return {
        storage_key(str(id_), file["sha256"]): file["sha256"]
        for id_, files in [*rows, *((id_, described["files"]) for id_, described in parts)]
        for file in files or ()
    }


async def unfinished(account_id: int) -> list[str]:
    """The ids of the account's requests that have not ended."""
    rows = SimulationRequest.filter(account_id=account_id, state__in=[State.QUEUED, State.RUNNING])
    return [str(request_id) for request_id in await rows.values_list("request_id", flat=True)]


async def sweep(platform: Platform) -> None:
    """Delete what this machine has of requests that another one ended, and stored parts of any that ended."""
    await sweep_parts(platform.storage)
    directory = platform.settings.data_dir / "outputs"
    here = [path.name for path in await asyncio.to_thread(lambda: list(directory.iterdir()))]
    ended = SimulationRequest.filter(request_id__in=here).exclude(state__in=[State.QUEUED, State.RUNNING])
    for request_id in await ended.values_list("request_id", flat=True):
        await discard(directory / str(request_id))


@transactional
async def forget(account_id: int, name: str, becomes: str) -> None:
    """Keep what an account used and paid under its neutral name, and nothing that names it.

    Its requests are no longer shared with later orders.
    """
    rows = SimulationRequest.filter(account_id=account_id)
    lines = HistoryLine.filter(request_id__in=Subquery(rows.values("id")))
    await lines.filter(reason__contains=name).update(reason=None)
    await rows.filter(reason__contains=name).update(reason=None)
    await Reader.filter(account_id=account_id).delete()
    await rows.update(
        hub_username=becomes, config_hash="", webhook_url=None, output=None, output_hub_repo=None
    )
    await totals.rename(name, becomes)


async def were_ordered(seeds: Collection[int]) -> bool:
    """Whether any request has one of these seeds."""
    return await SimulationRequest.filter(seed__in=[str(seed) for seed in seeds]).exists()


async def output_of(request_id: str, account_id: int | None) -> tuple[records.OutputFile, ...]:
    """The files of a request's output in the storage backend, none before they were collected.

    For ``account_id`` none unless it completed: another end was refunded. None is for operators. Raises
    NotFound.
    """
    row = await visible(request_id, account_id)
    if account_id is not None and row.state != State.COMPLETED:
        return ()
    return tuple(records.OutputFile(**file) for file in row.output or ())


async def visible(request_id: str, account_id: int | None) -> SimulationRequest:
    """The row of a request that ``account_id`` may see; None: of any account. Raises NotFound."""
    row = None
    if REQUEST_ID.fullmatch(request_id):
        row = await _by_id.get_or_none(request_id)
    if row is None or not await _may_read(row, account_id):
        raise NotFound(f"there is no request {request_id[:100]!r}")
    return row


async def _with_timeline(
    request_id: str, account_id: int | None, attempts: int = len(State)
) -> tuple[SimulationRequest, list[HistoryLine]]:
    """A request as :func:`visible`, and its timeline, of one moment: no state changes so many times."""
    row = await visible(request_id, account_id)
    timeline = await transitions.history_of(row)
    # Each change of state adds a line in its transaction: else it was between the two statements.
    if attempts and timeline and timeline[-1].state != row.state:
        return await _with_timeline(request_id, account_id, attempts - 1)
    return row, timeline


async def _may_read(row: SimulationRequest, account_id: int | None) -> bool:
    if account_id in (None, row.account_id):
        return True
    return await Reader.filter(request_id=row.id, account_id=account_id).exists()


async def watch(platform: Platform, request_id: str, account_id: int) -> AsyncIterator[bytes]:
    """Server-sent events of a request; raises NotFound, and TooManyRequests as ``Watching.stream``."""
    await visible(request_id, account_id)
    look = partial(find_with_progress, platform, request_id)
    return platform.watching.stream(request_id, account_id, look)


async def find_with_progress(
    platform: Platform, request_id: str, account_id: int | None = None
) -> records.SimulationRequest:
    """As :func:`find`, with what the runner reports of a running job."""
    row, timeline = await _with_timeline(request_id, account_id)
    runner = platform.runners.things.get(row.runner)
    if runner is not None and runner.watched_poll_seconds is not None:
        await transitions.poll_soon(row, runner.watched_poll_seconds)
    return replace(view(row, timeline), progress=await _progress(platform, row))


async def _progress(platform: Platform, row: SimulationRequest) -> records.JobProgress | None:
    if row.state != State.RUNNING or not row.handle:
        return None
    try:
        async with asyncio.timeout(_PROGRESS_SECONDS):
            found = await platform.runners.get(row.runner).progress(row.handle)
    except (RunnerError, TimeoutError):
        return None
    except Exception:  # a third-party runner; the request is shown all the same
        logger.exception("runner %s failed to report progress", row.runner)
        return None
    return None if found is None else records.JobProgress.of(found)
