# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
"""A stream as a dataset of torch, which must be installed separately."""

from __future__ import annotations

import mmap
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch
from torch.utils.data import IterableDataset, get_worker_info

from collidium.learning.batch import Batch
from collidium.learning.stream import EventStream
from collidium.physics.ragged import ALIGNMENT, ALLOCATE, Array

#: Number of reusable slots of shared memory for batches of all workers. Further batches get new memory.
SLOTS: Final = 16


class EventDataset(IterableDataset):  # type: ignore[misc]  # torch is not installed where types are checked
    """Batches of a stream for ``torch.utils.data.DataLoader(dataset, batch_size=None)``.

    Each worker of the loader has its own share. Persistent workers advance to the next epoch; others need
    :meth:`~collidium.learning.EventStream.set_epoch` before each epoch.

    Parameters
    ----------
    stream
        The stream, with ``rank`` and ``world`` of the process.
    transform
        Converts each batch in the worker; default: to tensors. For example
        ``lambda batch: batch.padded(2048).to_torch()``.
    """

    def __init__(self, stream: EventStream, transform: Callable[[Batch], Any] = Batch.to_torch) -> None:
        self.stream = stream
        self.transform = transform
        self._own: EventStream | None = None
        # Four times the mean, because batches differ in size and may be padded.
        self._slots: _Slots | None = _Slots(int(4 * stream.batch * stream.bytes_per_event))

    def _share(self) -> EventStream:
        """The stream of the current worker."""
        worker = get_worker_info()
        if worker is None:
            return self.stream
        if self._own is None:
            self._own = self.stream.share(worker.id, worker.num_workers)
        return self._own

    def __iter__(self) -> Iterator[Any]:
        worker = get_worker_info()
        if worker is None:
            return map(self.transform, self._share())
        own = range(worker.id, SLOTS, worker.num_workers)
        return self._packed(iter(self._share()), own)

    def _packed(self, batches: Iterator[Batch], own: range) -> Iterator[_Packed]:
        """Convert batches. Copies of values are written directly to a slot, if one is free."""
        while True:
            room = self._slots.room(own) if self._slots else None
            token = ALLOCATE.set(room.allocate if room else None)
            try:
                tree = self.transform(next(batches))
            except StopIteration:
                return
            finally:
                ALLOCATE.reset(token)
            yield _Packed(tree, room)
            del tree, room

    def state_dict(self) -> dict[str, Any]:
        """As :meth:`~collidium.learning.EventStream.state_dict`, of the current worker."""
        return self._share().state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """As :meth:`~collidium.learning.EventStream.load_state_dict`."""
        self._share().load_state_dict(state)


class _Slots:
    """Shared memory that workers fill and the main process reads and releases.

    Allocating new shared memory takes longer than decoding its content.
    """

    def __init__(self, slot_bytes: int) -> None:
        self.slot_bytes = -(-slot_bytes // mmap.PAGESIZE) * mmap.PAGESIZE
        self._memory = mmap.mmap(-1, mmap.PAGESIZE + SLOTS * self.slot_bytes)
        #: Set by the worker that fills a slot, cleared when the main process no longer refers to it.
        self.busy = np.frombuffer(self._memory, np.uint8, SLOTS)
        #: Slots to which this worker may still refer.
        self._filled: dict[int, weakref.ref[Array]] = {}
        self.key = len(_SLOTS)
        _SLOTS.append(weakref.ref(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(None), ()  # only forked processes share the memory

    def buffer(self, slot: int) -> Array:
        """A new array of the memory of a slot."""
        return np.frombuffer(self._memory, np.uint8, self.slot_bytes, mmap.PAGESIZE + slot * self.slot_bytes)

    def room(self, own: range) -> _Room | None:
        """A free slot of those that a worker owns; None if there is none."""
        for slot in own:
            filled = self._filled.get(slot)
            if not self.busy[slot] and (filled is None or filled() is None):
                room = _Room(self.buffer(slot), (self.key, slot))
                self._filled[slot] = weakref.ref(room.memory)
                return room
        return None

    def claimed(self, slot: int) -> Array:
        """The memory of a filled slot, which becomes free with the returned array."""
        memory = self.buffer(slot)
        weakref.finalize(memory, self.busy.__setitem__, slot, 0).atexit = False
        return memory


_SLOTS: list[weakref.ref[_Slots]] = []


@dataclass(frozen=True, slots=True)
class _Place:
    """The location of a tensor in shared memory."""

    start: int
    size: int
    dtype: Any
    shape: Any


class _Room:
    """Memory that is filled from its beginning; another process gets it by ``sent``."""

    def __init__(self, memory: Array, sent: Any) -> None:
        self.memory = memory
        self.sent = sent
        self._used = 0

    def allocate(self, size: int) -> Array:
        """Allocate memory in it, or new memory if it is full."""
        start = -(-self._used // ALIGNMENT) * ALIGNMENT
        if start + size > len(self.memory):
            return np.empty(size, np.uint8)
        self._used = start + size
        return self.memory[start : start + size]

    def holds(self, tensors: Sequence[torch.Tensor]) -> bool:
        """Whether :meth:`place` has room for all of them."""
        others: int = sum(one.nbytes + ALIGNMENT for one in tensors if self._start(one) is None)
        return self._used + others <= len(self.memory)

    def place(self, tensor: torch.Tensor) -> _Place:
        """Return the location of a tensor, which is copied into the memory if necessary."""
        start = self._start(tensor)
        if start is None:
            memory = torch.from_numpy(self.allocate(tensor.nbytes))
            # As bytes: torch copies unsigned integers slowly.
            memory.copy_(tensor.reshape(-1).view(torch.uint8))
            start = memory.data_ptr() - self.memory.ctypes.data
        return _Place(start, tensor.nbytes, tensor.dtype, tensor.shape)

    def _start(self, tensor: torch.Tensor) -> int | None:
        start = tensor.data_ptr() - self.memory.ctypes.data
        inside = tensor.is_contiguous() and 0 <= start <= len(self.memory) - tensor.nbytes
        return start if inside else None


class _Packed:
    """A tree of tensors that is sent as one block of shared memory."""

    def __init__(self, tree: Any, room: _Room | None) -> None:
        self.tree = tree
        self.room = room

    def __reduce__(self) -> tuple[Any, ...]:
        tensors: list[torch.Tensor] = []
        _each(self.tree, tensors.append)
        room = self.room
        if room is None or not room.holds(tensors):
            memory = torch.empty(sum(one.nbytes + ALIGNMENT for one in tensors), dtype=torch.uint8)
            room = _Room(memory.numpy(), memory)
        plan = _each(self.tree, room.place)
        if room is self.room:
            key, slot = room.sent
            slots = _SLOTS[key]()
            assert slots is not None  # noqa: S101 -- the dataset of this worker holds them
            slots.busy[slot] = 1
        return _unpacked, (room.sent, plan)


def _each(tree: Any, convert: Callable[[Any], Any], kind: type = torch.Tensor) -> Any:
    """Convert the leaves of a type in a tree."""
    if isinstance(tree, dict):
        return {name: _each(of, convert, kind) for name, of in tree.items()}
    return convert(tree) if isinstance(tree, kind) else tree


def _unpacked(memory: Any, plan: Any) -> Any:
    if isinstance(memory, tuple):
        key, slot = memory
        slots = _SLOTS[key]()
        assert slots is not None  # noqa: S101 -- the loader that asks holds them
        memory = torch.from_numpy(slots.claimed(slot))

    def tensor(of: _Place) -> torch.Tensor:
        return memory[of.start : of.start + of.size].view(of.dtype).reshape(of.shape)

    return _each(plan, tensor, _Place)
