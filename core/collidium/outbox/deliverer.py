"""Delivers what was announced: a loop over the database that any number of processes may run.

A killed process loses nothing: what it had taken is taken again when its lease is over, so a receiver may
hear of an event more than once, always with the same id.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

from tortoise.timezone import now

from collidium.errors import ConfigurationError
from collidium.outbox import deliveries
from collidium.outbox.deliveries import Attempt
from collidium.outbox.events import announced
from collidium.outbox.sending import Outcome, Sender
from collidium.outbox.turns import LIMITS, Due, Memory, Standing, in_turn
from collidium.runtime.backoff import Backoff
from collidium.runtime.wake_signal import Listener

if TYPE_CHECKING:
    from collidium.secrets import Secrets
    from collidium.settings import Settings

logger = logging.getLogger(__name__)

#: Whoever takes an event later than that is slow: it holds places that others wait for.
PROMPT_SECONDS: Final = 2.0
#: Seconds between two looks into the database when nobody rings.
IDLE_SECONDS: Final = 2.0
#: How long deliveries under way may go on when the process ends.
ENDING_SECONDS: Final = 3.0
PAUSES: Final = Backoff(first=timedelta(seconds=5), longest=timedelta(hours=1))


@asynccontextmanager
async def delivering(settings: Settings, secrets: Secrets) -> AsyncIterator[None]:
    """Deliver in the background while the context lasts; what is under way then is left to others."""
    deliverer = Deliverer(await Sender.open(settings), secrets, settings)
    loop = asyncio.create_task(deliverer.run(), name="webhooks")
    try:
        yield
    finally:
        loop.cancel()
        await asyncio.gather(loop, return_exceptions=True)
        await deliverer.stop(ENDING_SECONDS)


class Deliverer:
    """Takes deliveries that are due and attempts each in a task of its own."""

    def __init__(
        self,
        sender: Sender,
        secrets: Secrets,
        settings: Settings,
        clock: Callable[[], datetime] = now,
    ) -> None:
        self._sender = sender
        self._secrets = secrets
        self._clock = clock
        self._give_up = timedelta(seconds=settings.webhook_give_up_seconds)
        # Longer than any attempt takes, so that nobody else begins one meanwhile.
        self._lease = timedelta(seconds=settings.webhook_timeout_seconds + settings.lease_seconds)
        self._under_way: dict[asyncio.Task[None], Attempt] = {}
        self._memory = Memory()

    async def deliver_due(self) -> int:
        """Attempt everything that is due now, and wait for it; how many attempts that were."""
        attempts = 0
        while started := await self._start_due(Listener()):
            attempts += started
            await asyncio.gather(*self._under_way)
        return attempts

    async def run(self) -> None:
        """Deliver what is due, for ever."""
        with announced.listener() as listener:
            while True:
                try:
                    if await self._start_due(listener):
                        continue
                except Exception:
                    # Whatever it is (a database that is away), nobody would deliver any more if this ended.
                    logger.exception("webhooks: cannot see what is due")
                await listener.wait(IDLE_SECONDS)

    async def stop(self, seconds: float) -> None:
        """Wait so long for what is under way, and then leave it."""
        if self._under_way:
            _, late = await asyncio.wait(list(self._under_way), timeout=seconds)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _start_due(self, listener: Listener) -> int:
        """Begin what is due, as far as there is room; wakes ``listener`` when there is room again."""
        if len(self._under_way) >= LIMITS[Standing.ANSWERING].process:
            return 0
        taken = await deliveries.take(self._clock(), self._lease, self._choose)
        for attempt in taken:
            task = asyncio.create_task(self._attempt(attempt))
            self._under_way[task] = attempt
            self._memory.turn_of(attempt.account_id)
            task.add_done_callback(partial(self._ended, listener))
        return len(taken)

    def _choose(self, due: Sequence[Due]) -> list[Due]:
        under_way = [attempt.receiver for attempt in self._under_way.values()]
        return in_turn(due, under_way, self._memory.standing, self._memory.last_turns)

    def _ended(self, listener: Listener, task: asyncio.Task[None]) -> None:
        del self._under_way[task]
        listener.wake()
        if not task.cancelled() and (error := task.exception()) is not None:
            # The database is away, for example: when the lease is over the delivery is taken again.
            logger.error("webhooks: what became of a delivery cannot be written down", exc_info=error)

    async def _attempt(self, attempt: Attempt) -> None:
        begun = asyncio.get_running_loop().time()
        try:
            outcome = await self._send(attempt)
        except Exception:
            # Whatever it is, it counts as an attempt that failed: else there would be no end to them.
            logger.exception("webhook delivery %d", attempt.delivery_id)
            outcome = Outcome(None, "the platform could not send it")
        late = asyncio.get_running_loop().time() - begun > PROMPT_SECONDS
        # Known at once, also where the database is away and nothing can be written down.
        if outcome.error is None and not late:
            self._memory.answered(attempt.receiver)
            failures = 0
        elif outcome.ours:
            failures = 0
        else:
            failures = self._memory.failed(attempt.receiver)
        await self._settle(attempt, outcome, failures)

    async def _send(self, attempt: Attempt) -> Outcome:
        if attempt.secret is None:
            return Outcome(None, "the webhook was removed")
        if attempt.banned:
            return Outcome(None, "the account is banned")
        try:
            secret = self._secrets.decrypt(attempt.secret)
        except ConfigurationError as error:
            logger.error("webhook delivery %d: %s", attempt.delivery_id, error)
            return Outcome(None, "the signing secret cannot be read by the platform; rotate it")
        return await self._sender.send(
            attempt.url,
            attempt.account_id,
            event_id=attempt.event_id,
            body=attempt.body,
            secret=secret,
            moment=self._clock(),
            answering=self._memory.standing(attempt.receiver) is Standing.ANSWERING,
        )

    async def _settle(self, attempt: Attempt, outcome: Outcome, failures: int) -> None:
        """Write down what became of an attempt, the receiver's last of so many failures in a row."""
        moment = self._clock()
        # Neither the URL nor its path: people put secrets there.
        told = f"webhook delivery {attempt.delivery_id} of request {attempt.request_id}"
        if outcome.error is None:
            await deliveries.delivered(attempt, outcome.status, moment)
            logger.info("%s: delivered at attempt %d", told, attempt.number)
            await deliveries.call_up(attempt.receiver, moment)
            return
        again = None
        last = attempt.created_at + self._give_up
        if attempt.secret is not None and not outcome.gone and moment < last:
            again = min(moment + PAUSES.pause(attempt.number), last)
        await deliveries.failed(attempt, outcome.status, outcome.error, again)
        why = f"{outcome.error} ({outcome.cause})" if outcome.cause else outcome.error
        logger.info("%s: %s; %s", told, why, f"again at {again}" if again else "given up")
        if not (outcome.gone or outcome.ours):
            # By the receiver's failures: an event that it never takes must not hold up the others for long.
            until = again if again and attempt.number <= failures else moment + PAUSES.pause(failures)
            await deliveries.put_off(attempt.receiver, moment, until)
