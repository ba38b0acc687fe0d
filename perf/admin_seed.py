"""A platform of many accounts and requests for perf/admin.py and perf/console.py, written in bulk.

Everything adds up: balances are the sums of their entries, running totals those of their requests.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from tortoise.models import Model

from collidium import database
from collidium.accounts.models import Account, CreditTransaction
from collidium.operations.models import AuditEntry
from collidium.order import Order
from collidium.simulations import totals
from collidium.simulations.models import SimulationRequest, order_columns
from collidium.submissions.models import Submission

CHANNELS = ("ttbar", "jets", "zmumu", "higgs_portal", "single_muon")
#: One in a thousand requests is of this one.
RARE = "dihiggs"
GRANT, PRICE = Decimal(10_000), Decimal("0.100")
#: Days over which requests are spread, up to now.
DAYS = 60
BATCH = 5_000


async def fill(url: str, requests: int, accounts: int) -> None:
    """Write so many requests and accounts, a fifth as many submissions, a tenth as many operator actions."""
    async with database.connected(url):
        moment = datetime.now(UTC)
        await _write(_account(n, requests, accounts, moment) for n in range(accounts))
        ids = dict(await Account.all().values_list("hub_username", "id"))
        await _write(
            _entry(ids[name_of(n)], GRANT, GRANT, "admin_grant", f"grant:{n}") for n in range(accounts)
        )
        await _write(_request(n, requests, accounts, ids, moment) for n in range(requests))
        await _write(
            _entry(
                ids[name_of(n % accounts)],
                -PRICE,
                GRANT - PRICE * (n // accounts + 1),
                "simulation_charge",
                f"{n:032x}",
            )
            for n in range(requests)
        )
        await _write(_submission(n, requests, accounts, ids, moment) for n in range(requests // 5))
        await _write(
            AuditEntry(
                actor="admin", action="unban", target=name_of(n % accounts), details={"note": "a mistake"}
            )
            for n in range(requests // 10)
        )
        await totals.rebuild()


def name_of(number: int) -> str:
    """The name of an account."""
    return f"physicist-{number:05d}"


async def _write(rows: Iterator[Model]) -> None:
    """Rows of one table, in bounded memory."""
    batch: list[Model] = []
    for row in rows:
        batch.append(row)
        if len(batch) == BATCH:
            await type(row).bulk_create(batch, batch_size=500)
            batch = []
    if batch:
        await type(batch[0]).bulk_create(batch, batch_size=500)


def _account(number: int, requests: int, accounts: int, moment: datetime) -> Account:
    ordered = requests // accounts + (number < requests % accounts)
    return Account(
        hub_username=name_of(number),
        credits=GRANT - PRICE * ordered,
        banned=number % 100 == 99,
        signed_up_at=moment,
        last_seen_at=moment,
    )


def _entry(account_id: int, delta: Decimal, after: Decimal, reason: str, reference: str) -> CreditTransaction:
    return CreditTransaction(
        account_id=account_id, delta=delta, balance_after=after, reason=reason, reference=reference
    )


def _request(
    number: int, requests: int, accounts: int, ids: dict[str, int], moment: datetime
) -> SimulationRequest:
    """The oldest first; of a hundred, 95 completed, four failed by their owner's doing, one is cancelled.

    The last hundredth is queued and running.
    """
    created = moment - timedelta(days=DAYS) * (requests - number) / requests
    name = name_of(number % accounts)
    unfinished = number >= requests - requests // 100
    state = ("queued", "running")[number % 2] if unfinished else _ended(number % 100)
    finished = None if unfinished else created + timedelta(minutes=1)
    channel = RARE if number % 1000 == 0 else CHANNELS[number % len(CHANNELS)]
    return SimulationRequest(
        request_id=f"{number:032x}",
        account_id=ids[name],
        hub_username=name,
        **order_columns(Order(channel, 10, 0, number)),
        pipeline_version="acts-1",
        config_hash=f"{number:064x}",
        state=state,
        reason="the token may not write" if state == "failed" else None,
        created_at=created,
        created_day=totals.day_of(created),
        started_at=None if state == "queued" else created,
        finished_at=finished,
        finished_month=totals.month_of(finished) if finished else None,
        credits_charged=PRICE,
        estimated_node_hours=PRICE,
        node_hours=PRICE,
        runner="mock",
        is_mock=True,
        handle=f"{number:032x}",
        node_seconds=360,
        step="follow" if unfinished else "",
        # No process follows them during the measurement.
        due_at=moment + timedelta(hours=1) if unfinished else None,
        deadline_at=moment + timedelta(days=1) if unfinished else None,
    )


def _ended(hundredth: int) -> str:
    if hundredth < 95:
        return "completed"
    return "failed" if hundredth < 99 else "cancelled"


def _submission(
    number: int, requests: int, accounts: int, ids: dict[str, int], moment: datetime
) -> Submission:
    """Half of them report themselves, and a thousandth of those is not verified."""
    name = name_of(number % accounts)
    submitted = moment - timedelta(days=DAYS) * (requests // 5 - number) / (requests // 5)
    timed = number % 2 == 1
    return Submission(
        id=f"{number:032x}",
        challenge="tracking_latency" if timed else "tracking",
        task="tracking_latency" if timed else "tracking",
        account_id=ids[name],
        hub_username=name,
        participant=f"account:{ids[name]}",
        sha256=f"{number:064x}",
        size_bytes=1_000_000,
        rows=100_000,
        scores={"trackml_weighted_efficiency": number / requests},
        uncertainties={"trackml_weighted_efficiency": 0.01},
        rank_score=number / requests,
        scorer_version="1",
        truth_version="0" * 16,
        submitted_at=submitted,
        verified_at=submitted if timed and number % 2000 != 1 else None,
    )
