"""The contract of an executor, which scores blocks in worker processes or on a cluster."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final, TypeVar

from collidium.contracts.storage import Storage

logger = logging.getLogger(__name__)

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one call: memory in bytes, and time in seconds."""

    memory_bytes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file of the storage, as other machines find it; ``sha256`` is checked where it is known."""

    key: str
    bytes: int
    sha256: str | None = None


class Opaque(bytes):
    """Bytes of a result that its caller stores or passes on without reading them."""


class Executor(ABC):
    """Runs functions outside the server's process, under limits.

    What a worker returns is data, decoded by the function's return annotation: the server executes nothing of
    it, even if a task or a hostile file took over the worker.
    """

    name: str
    #: Whether calls run on other machines, where the files of this one are not.
    is_remote: ClassVar[bool] = False

    @abstractmethod
    def map(
        self,
        function: Callable[[Item], Result],
        items: Sequence[Item],
        limits: Limits,
        *,
        raises: tuple[type[Exception], ...] = (),
        fresh: bool = False,
        local: bool = False,
        alone: bool = False,
        files: Mapping[Path, StoredFile] | None = None,
    ) -> AsyncGenerator[Result, None]:
        """Yield ``function(item)`` for each item, in the order of the items.

        Child processes of a call share its limits and end with it, whatever they keep open. Closing the
        generator early cancels waiting calls and ends running ones.

        Parameters
        ----------
        function : callable
            Of a module. Its result has the annotated type, which msgspec decodes: numbers, text, bytes,
            :class:`Opaque`, paths, collections and dataclasses of these.
        items : sequence
            Picklable.
        limits : Limits
            Of each call.
        raises : tuple of types of exceptions
            Those that the caller handles, made again from the plain arguments of their constructor.
        fresh : bool
            End each worker after its call: the call may run third-party code, which may change the process.
        local : bool
            Run the calls on this machine: they are short, take much data, or read files that are here alone.
        alone : bool
            Run each call in a new worker, which begins while this executor runs no other call on the worker's
            machine: the call has the memory and time of its limits.
        files : mapping of paths
            Where another machine finds the files whose paths are in the items.

        Yields
        ------
        object
            The result of each call.

        Raises
        ------
        CallFailed
            If the function raises any other exception; a note has its traceback.
        OverLimit
            If a call exceeds its limits.
        WorkerCrashed, WorkerKilled, WorkerNotStarted
            If a worker ends without a result.
        """

    async def map_repeating(
        self,
        function: Callable[[Item], Result],
        items: Sequence[Item],
        limits: Limits,
        *,
        raises: tuple[type[Exception], ...] = (),
        fresh: bool = False,
        local: bool = False,
        files: Mapping[Path, StoredFile] | None = None,
    ) -> AsyncGenerator[Result, None]:
        """Yield as :meth:`map`, and repeat once, alone, a call that exceeded its limits or lost its worker.

        A worker may be lost, and a limit exceeded, because of what else runs on the machine. Only if the
        repeated call ends by :data:`OWN_FAULTS` is the call at fault.

        Raises
        ------
        Exception
            As :meth:`map`: that of the repeated call.
        """
        done = 0
        while done < len(items):
            try:
                calls = self.map(
                    function, items[done:], limits, raises=raises, fresh=fresh, local=local, files=files
                )
                async with aclosing(calls) as results:
                    async for result in results:
                        done += 1
                        yield result
            except (OverLimit, WorkerDied) as error:
                logger.warning("call %d of %s is repeated: %s", done, function.__qualname__, error)
            else:
                return
            again = self.map(
                function, items[done : done + 1], limits, raises=raises, local=local, alone=True, files=files
            )
            async with aclosing(again) as results:
                result = await anext(results)
            done += 1
            yield result

    async def check(self) -> None:  # noqa: B027 -- what needs nothing else is always there
        """Return at once if calls can be run now, for ``/readyz``; one that needs a scheduler asks it.

        Raises
        ------
        Exception
            If no call can be run now; the message says why.
        """

    async def serve(self, storage: Storage) -> None:
        """Run the calls of other machines on this one, until cancelled; ``collidium worker --dask`` does.

        Parameters
        ----------
        storage : Storage
            Where the files of calls are.

        Raises
        ------
        NotImplementedError
            If the executor has workers on its own machine alone.
        """
        raise NotImplementedError

    @abstractmethod
    async def close(self) -> None:
        """End all workers. Idempotent."""


class OverLimit(RuntimeError):
    """A call exceeded its limit of time or memory."""


class CallFailed(RuntimeError):
    """A call raised an exception that its caller does not handle, or returned another type than annotated."""


class WorkerDied(RuntimeError):
    """A worker ended without a result; one of the following."""


class WorkerCrashed(WorkerDied):
    """A worker ended by its call: by a signal of a fault such as SIGSEGV, an exit, or an invalid answer."""


class WorkerKilled(WorkerDied):
    """A worker was ended from outside, as by the kernel for lack of memory, or its machine was lost."""


class WorkerNotStarted(WorkerDied):
    """A worker ended, or did not answer in time, before it began the call."""


#: How a call ends by its own fault, if it does so again when it is repeated alone.
OWN_FAULTS: Final = (OverLimit, WorkerCrashed)
