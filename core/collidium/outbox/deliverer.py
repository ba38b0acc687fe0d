"""The loop that delivers events to webhooks and as e-mail. Any number of processes may run it.

Deliveries of a killed process are taken again when their lease has expired, so a receiver may get an event
more than once, always with the same id.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from tortoise.timezone import now

from collidium.database.leased_loop import LeasedLoop
from collidium.errors import ConfigurationError
from collidium.outbox import deliveries
from collidium.outbox.deliveries import Attempt
from collidium.outbox.events import MAIL, announced
from collidium.outbox.mail import Mailer
from collidium.outbox.sending import Sender, SendingOutcome
from collidium.outbox.turns import LIMITS, Due, Memory, ReceiverStanding, in_turn
from collidium.outbox.window import DueWindow
from collidium.runtime import metrics
from collidium.runtime.waiting import Backoff

if TYPE_CHECKING:
    from collidium.secrets import Secrets
    from collidium.settings import Settings

logger = logging.getLogger(__name__)

#: A receiver that takes longer is slow, which counts as a failure.
PROMPT_SECONDS: Final = 2.0
#: Seconds between two queries when there is no notification.
IDLE_SECONDS: Final = 2.0
#: Time for running deliveries to finish when the process ends.
ENDING_SECONDS: Final = 3.0
PAUSES: Final = Backoff(first=timedelta(seconds=5), longest=timedelta(hours=1))


@asynccontextmanager
async def delivering(settings: Settings, secrets: Secrets) -> AsyncIterator[None]:
    """Deliver in the background while the context lasts."""
    async with Deliverer(Sender(settings), secrets, settings).running(ENDING_SECONDS):
        yield


class Deliverer(LeasedLoop[Attempt]):
    """Leases due deliveries and attempts each in a task."""

    def __init__(
        self,
        sender: Sender,
        secrets: Secrets,
        settings: Settings,
        clock: Callable[[], datetime] = now,
    ) -> None:
        super().__init__("webhooks", announced, IDLE_SECONDS)
        self._sender = sender
        self._mailer = Mailer(settings, secrets)
        self._secrets = secrets
        self._clock = clock
        self._give_up = timedelta(seconds=settings.webhook_give_up_seconds)
        # Longer than any attempt, so that no other process starts one at the same time.
        self._lease = timedelta(seconds=settings.webhook_timeout_seconds + settings.lease_seconds)
        self._memory = Memory()
        self._window = DueWindow()

    async def deliver_due(self) -> int:
        """Attempt all deliveries that are due, and return the number of attempts."""
        attempts = 0
        while await self.take():
            attempts += len(self._under_way)
            await asyncio.gather(*self._under_way)
        return attempts

    async def take(self) -> bool:
        if len(self._under_way) >= LIMITS[ReceiverStanding.ANSWERING].process:
            return False
        taken = await deliveries.take(self._clock(), self._lease, self._choose, self._window)
        for attempt in taken:
            self.begin(self._attempt(attempt), attempt)
            self._memory.turn_of(attempt.row.account_id)
        return bool(taken)

    def _choose(self, due: Sequence[Due]) -> list[Due]:
        under_way = [attempt.receiver for attempt in self._under_way.values()]
        return in_turn(due, under_way, self._memory.standing, self._memory.last_turns)

    async def _attempt(self, attempt: Attempt) -> None:
        started = asyncio.get_running_loop().time()
        try:
            outcome = await self._send(attempt)
        except Exception:
            # Counts as a failed attempt, so that the delivery is given up eventually.
            logger.exception("delivery %d", attempt.row.id)
            outcome = SendingOutcome(None, "the platform could not send it")
        late = asyncio.get_running_loop().time() - started > PROMPT_SECONDS
        # Remembered before the database is written, which may be unreachable.
        if outcome.error is None and not late:
            self._memory.answered(attempt.receiver)
            failures = 0
        elif outcome.ours:
            failures = 0
        else:
            failures = self._memory.failed(attempt.receiver)
        await self._settle(attempt, outcome, failures)

    async def _send(self, attempt: Attempt) -> SendingOutcome:
        is_mail = attempt.row.url == MAIL
        if attempt.means is None:
            what = "e-mail address" if is_mail else "webhook"
            return SendingOutcome(None, f"the {what} was removed", final=True)
        if attempt.banned:
            return SendingOutcome(None, "the account is banned")
        if is_mail:
            return await self._mailer.send(attempt, attempt.means)
        try:
            secret = self._secrets.decrypt(attempt.means)
        except ConfigurationError as error:
            logger.error("delivery %d: %s", attempt.row.id, error)
            return SendingOutcome(None, "the signing secret cannot be read by the platform; rotate it")
        return await self._sender.send(
            attempt.row.url,
            attempt.row.account_id,
            event_id=attempt.row.event_id,
            body=attempt.row.event.body,
            secret=secret,
            moment=self._clock(),
            answering=self._memory.standing(attempt.receiver) is ReceiverStanding.ANSWERING,
        )

    async def _settle(self, attempt: Attempt, outcome: SendingOutcome, failures: int) -> None:
        """Record the outcome of an attempt; ``failures`` is the number of the receiver's consecutive ones."""
        moment = self._clock()
        # Log no URL: it may contain secrets.
        which = f"delivery {attempt.row.id} of {attempt.row.event.reference}"
        if outcome.error is None:
            await deliveries.delivered(attempt, outcome.status, moment)
            metrics.WEBHOOKS.labels("delivered").inc()
            logger.info("%s: delivered at attempt %d", which, attempt.row.attempts)
            await deliveries.call_up(attempt.receiver, moment)
            return
        again = None
        last = attempt.row.created_at + self._give_up
        if not outcome.final and moment < last:
            again = min(moment + PAUSES.pause(attempt.row.attempts), last)
        await deliveries.failed(attempt, outcome.status, outcome.error, again)
        metrics.WEBHOOKS.labels("failed" if again else "given_up").inc()
        why = f"{outcome.error} ({outcome.cause})" if outcome.cause else outcome.error
        logger.info("%s: %s; %s", which, why, f"again at {again}" if again else "given up")
        if not (outcome.final or outcome.ours):
            # By the receiver's failures, so that one event that it rejects does not delay the others for
            # long.
            until = again if again and attempt.row.attempts <= failures else moment + PAUSES.pause(failures)
            await deliveries.put_off(attempt.receiver, moment, until)
