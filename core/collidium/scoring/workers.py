"""Calls workers for the engine, and finds out whose fault it is when a call fails.

A file can make its reader raise, crash, hang or swell; so can a task. The first is reported to the submitter
as a problem of the file, the second is the operator's to mend and goes to the log.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn, TypeVar

from collidium.contracts.executor import Executor, Limits, Opaque, OverLimit, StoredFile, WorkerDied
from collidium.contracts.task import Problem, Task
from collidium.errors import ScoringFailed, Unavailable
from collidium.runtime.logs import message_of
from collidium.scoring import span
from collidium.scoring.predictions import Unreadable
from collidium.scoring.reading import Disordered

logger = logging.getLogger(__name__)

Item = TypeVar("Item")
Result = TypeVar("Result")

#: Called with the number of events scored so far, and of all.
Progress = Callable[[int, int], None]

#: Packages whose tasks leave a worker as it was.
OWN_PACKAGES: Final = {"collidium", "collidium_plugins", "collidium_tasks"}


@dataclass(frozen=True, slots=True)
class Workers:
    """An executor, as one evaluation uses it."""

    task: Task
    executor: Executor
    limits: Limits
    #: Where other machines find the files of the jobs.
    files: Mapping[Path, StoredFile] | None

    async def decode(self, function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """Call a function that only reads the file, on this machine.

        Raises Unreadable, Disordered and ScoringFailed.
        """
        try:
            async with aclosing(self._map(function, items, local=True)) as results:
                return [result async for result in results]
        except (Unreadable, Disordered):
            raise
        except (OverLimit, WorkerDied) as error:
            raise _unreadable(error) from error
        except Exception as error:  # a full disk, a broken executor: nothing that a submitter can mend
            self.fail("reading the predictions failed", error)

    async def score(
        self, jobs: Sequence[span.ScoringJob], progress: Progress | None
    ) -> list[span.ScoringResult]:
        """Score jobs, in order of events. Raises Unreadable, Disordered, Unavailable and ScoringFailed.

        Where rows were sorted, their files are on this machine alone, and they are scored here.
        """
        local = not self.files or any(job.partitions is not None for job in jobs)
        done: list[span.ScoringResult] = []
        try:
            async with aclosing(self._map(span.score, jobs, local=local)) as results:
                async for result in results:
                    done.append(result)
                    if progress:
                        job = jobs[len(done) - 1]
                        progress(job.span.events.stop - job.events.start, len(job.events))
        except (Unreadable, Disordered, Unavailable):
            raise
        except (OverLimit, WorkerDied) as error:
            # The file or the task? The file is read again, without the task.
            await self.decode(span.decode, [jobs[len(done)]])
            self.fail("the file can be read, but scoring it does not end well", error)
        except Exception as error:  # whatever a third-party task raises
            self.fail("the task raised an error", error)
        return done

    async def conclude(
        self, tallies: Sequence[Opaque], selections: Sequence[span.Selection]
    ) -> tuple[list[Problem], list[span.Conclusion]]:
        """Merge the jobs' tallies, in order of events, for each selection, as :func:`.span.conclude`.

        Raises ScoringFailed.
        """
        request = (self.task, tallies, selections)
        try:
            async with aclosing(self._map(span.conclude, [request], local=True)) as results:
                return await anext(results)
        except Exception as error:  # as in score
            self.fail("the task could not make metrics of its tallies", error)

    def _map(
        self, function: Callable[[Item], Result], items: Sequence[Item], *, local: bool
    ) -> AsyncGenerator[Result, None]:
        is_own = type(self.task).__module__.partition(".")[0] in OWN_PACKAGES
        return self.executor.map(
            function,
            items,
            self.limits,
            raises=(Unreadable, Disordered),
            fresh=not is_own,
            local=local,
            files=self.files,
        )

    def fail(self, reason: str, error: Exception | None = None) -> NoReturn:
        """Log what went wrong, and raise the error that clears the predictions."""
        name = self.task.card.name
        notes = "".join(getattr(error, "__notes__", ()))
        logger.error("scoring for task %s failed: %s: %r\n%s", name, reason, error, notes)
        raise ScoringFailed(
            f"scoring for task {name} failed, and not because of your predictions; the operators can see why "
            "in the log",
            retry_after=60,
        ) from error


def _unreadable(error: OverLimit | WorkerDied) -> Unreadable:
    if isinstance(error, OverLimit):
        return Unreadable(
            "too-large-to-decode",
            f"decoding the file {message_of(error)}; write smaller row groups, sorted by event",
        )
    return Unreadable("corrupt", "the file cannot be decoded: its reader crashes over it")
