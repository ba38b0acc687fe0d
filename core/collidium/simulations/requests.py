"""What owners and operators do with existing requests: find, list, watch, cancel, erase."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace
from tortoise.expressions import Subquery

from collidium import operations, records
from collidium.contracts.runner import RunnerError
from collidium.database import newest, transactional
from collidium.database.statements import RowByKey, columns
from collidium.errors import Forbidden, NotFound
from collidium.simulations import totals, transitions
from collidium.simulations.models import HistoryLine, Reader, SimulationRequest, State, StoredPart
from collidium.simulations.output import discard, storage_key, sweep_parts
from collidium.simulations.placing import cached_view
from collidium.simulations.transitions import operator_view, view

if TYPE_CHECKING:
    from collidium.accounts import AccountView
    from collidium.platform import Platform

logger = logging.getLogger(__name__)

REQUEST_ID: Final = re.compile(r"[0-9a-f]{32}")
_by_id: Final = RowByKey(SimulationRequest, "request_id")

#: Maximum time that a runner may take to report progress.
_PROGRESS_SECONDS: Final = 1.0


async def find(request_id: str, account_id: int | None = None) -> records.SimulationRequest:
    """Return a request with its timeline.

    Raises NotFound unless the account ordered the request or received it as the answer to an order of its
    own; ``account_id`` None finds the request of any account.
    """
    return _seen_by(account_id, *await _with_timeline(request_id, account_id))


async def find_as_operator(request_id: str) -> records.OperatedRequest:
    """Return any request with its timeline, its job and its next step. Raises NotFound."""
    return operator_view(*await _with_timeline(request_id, None))


async def cancel(platform: Platform, request_id: str, account: AccountView) -> records.SimulationRequest:
    """Cancel a request of the account itself. Raises NotFound, Forbidden and Conflict."""
    row = await visible(request_id, account.id)
    if row.account_id != account.id:
        raise Forbidden("only who ordered it can cancel a request")
    return await transitions.ask_to_cancel(request_id, "its owner", platform.settings)


@transactional
async def cancel_as_operator(
    platform: Platform, request_id: str, *, actor: str, http_request_id: str
) -> records.SimulationRequest:
    """Cancel any request. Raises NotFound and Conflict."""
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
    """Return up to ``limit`` requests with their serial numbers below ``before``, newest first."""
    query = SimulationRequest.all()
    if account_id is not None:
        query = query.filter(account_id=account_id)
    if states:
        query = query.filter(state__in=list(states))
    if channel is not None:
        query = query.filter(channel=channel)
    # The description of a million events' files takes a megabyte.
    listed = columns(SimulationRequest) - {"output"}
    return [(row.id, view(row)) for row in await newest(query, limit, before).only(*listed)]


async def ordered_by(account_id: int) -> tuple[int, tuple[str, ...]]:
    """Return the number of an account's requests, and the keys of their files in the storage."""
    rows = await SimulationRequest.filter(account_id=account_id)
    keys = (storage_key(row.request_id, file["sha256"]) for row in rows for file in row.output or ())
    return len(rows), tuple(keys)


async def stored_files() -> dict[str, str]:
    """Return the SHA-256 of every output file in the storage, by key."""
    rows = await SimulationRequest.filter(output__not_isnull=True).values_list("request_id", "output")
    parts = await StoredPart.filter(stored=True).values_list("request__request_id", "files")
    described = [*rows, *((id_, part["files"]) for id_, part in parts)]
    return {
        storage_key(str(id_), file["sha256"]): file["sha256"]
        for id_, files in described
        for file in files or ()
    }


async def unfinished(account_id: int) -> list[str]:
    """Return the ids of the account's requests that have not ended."""
    rows = SimulationRequest.filter(account_id=account_id, state__in=[State.QUEUED, State.RUNNING])
    return [str(request_id) for request_id in await rows.values_list("request_id", flat=True)]


async def sweep(platform: Platform) -> None:
    """Delete the stored parts of ended requests, and this machine's temporary files of ended requests."""
    await sweep_parts(platform.storage)
    directory = platform.settings.data_dir / "outputs"
    here = [path.name for path in await asyncio.to_thread(lambda: list(directory.iterdir()))]
    ended = SimulationRequest.filter(request_id__in=here).exclude(state__in=[State.QUEUED, State.RUNNING])
    for request_id in await ended.values_list("request_id", flat=True):
        await discard(directory / str(request_id))


@transactional
async def forget(account_id: int, name: str, becomes: str) -> None:
    """Replace an account's name by a neutral one in its requests and totals, and erase all other traces.

    Its requests no longer answer later orders.
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
    """Return the files of a request's output in the storage backend, none before they are collected.

    Accounts get the files of completed requests only, as others were refunded; operators (None) get any.
    Raises NotFound.
    """
    row = await visible(request_id, account_id)
    if account_id is not None and row.state != State.COMPLETED:
        return ()
    return tuple(records.OutputFile(**file) for file in row.output or ())


async def visible(request_id: str, account_id: int | None) -> SimulationRequest:
    """Return the row of a request that ``account_id`` may see, any row if None. Raises NotFound."""
    row = None
    if REQUEST_ID.fullmatch(request_id):
        row = await _by_id.get_or_none(request_id)
    if row is None or not await _may_read(row, account_id):
        raise NotFound(f"there is no request {request_id[:100]!r}")
    return row


async def _with_timeline(
    request_id: str, account_id: int | None, attempts: int = len(State)
) -> tuple[SimulationRequest, list[HistoryLine]]:
    """Return a request as :func:`visible` does, and its timeline, consistent with each other."""
    row = await visible(request_id, account_id)
    timeline = await transitions.history_of(row)
    # A change of state adds its line in the same transaction. If they differ, it came between the two reads;
    # a state cannot change more often than there are states.
    if attempts and timeline and timeline[-1].state != row.state:
        return await _with_timeline(request_id, account_id, attempts - 1)
    return row, timeline


async def _may_read(row: SimulationRequest, account_id: int | None) -> bool:
    if account_id in (None, row.account_id):
        return True
    return await Reader.filter(request_id=row.id, account_id=account_id).exists()


async def watch(platform: Platform, request_id: str, account_id: int) -> AsyncIterator[bytes]:
    """Return the server-sent events of a request. Raises NotFound and TooManyRequests."""
    row = await visible(request_id, account_id)
    is_own = row.account_id == account_id
    look = partial(find_with_progress, platform, request_id, None if is_own else account_id)
    return platform.watching.stream(request_id if is_own else f"{request_id}, cached", account_id, look)


async def find_with_progress(
    platform: Platform, request_id: str, account_id: int | None = None
) -> records.SimulationRequest:
    """Return a request as :func:`find` does, with the progress that the runner reports."""
    row, timeline = await _with_timeline(request_id, account_id)
    runner = platform.runners.things.get(row.runner)
    if runner is not None and runner.watched_poll_seconds is not None:
        await transitions.poll_soon(row, runner.watched_poll_seconds)
    return replace(_seen_by(account_id, row, timeline), progress=await _progress(platform, row))


def _seen_by(
    account_id: int | None, row: SimulationRequest, timeline: Sequence[HistoryLine]
) -> records.SimulationRequest:
    """The record for its owner (or None), or for a reader, who did not pay for it."""
    return view(row, timeline) if account_id in (None, row.account_id) else cached_view(row, timeline)


async def _progress(platform: Platform, row: SimulationRequest) -> records.JobProgress | None:
    if row.state != State.RUNNING or not row.handle:
        return None
    try:
        async with asyncio.timeout(_PROGRESS_SECONDS):
            found = await platform.runners.get(row.runner).progress(row.handle)
    except (RunnerError, TimeoutError):
        return None
    except Exception:  # a third-party runner; the request is returned without progress
        logger.exception("runner %s failed to report progress", row.runner)
        return None
    return None if found is None else records.JobProgress.of(found)
