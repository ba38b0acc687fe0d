# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
"""A stream as a dataset of torch. Needs torch, which this package does not bring."""

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

#: Batches on their way from all workers at a time, in memory that is used again. More take new memory.
SLOTS: Final = 16


class EventDataset(IterableDataset):  # type: ignore[misc]  # torch is not installed where types are checked
    """Batches of a stream for ``torch.utils.data.DataLoader(dataset, batch_size=None)``.

    Each worker of the loader has a share of its own. Persistent workers go on to the next epoch by
    themselves; others start anew and need :meth:`~collidium.learning.EventStream.set_epoch` before each one.

    Parameters
    ----------
    stream
        What is loaded; its ``rank`` and ``world`` are those of the process.
    transform
        What is made of each batch, in the worker; tensors by default. For example
        ``lambda batch: batch.padded(2048).to_torch()``.
    """

    def __init__(self, stream: EventStream, transform: Callable[[Batch], Any] = Batch.to_torch) -> None:
        self.stream = stream
        self.transform = transform
        self._own: EventStream | None = None
        #: Padding may make more of a batch than it is.
        self._slots: _Slots | None = _Slots(int(4 * stream.batch * stream.bytes_per_event))

    def _share(self) -> EventStream:
        """The stream of this worker."""
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
        """What is made of each batch, in memory of a slot from the beginning where it is copied at all."""
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
        """As :meth:`~collidium.learning.EventStream.state_dict`, of the worker that it is called in."""
        return self._share().state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """As :meth:`~collidium.learning.EventStream.load_state_dict`."""
        self._share().load_state_dict(state)


class _Slots:
    """Memory that workers fill and the process that started them reads, and gives back.

    New shared memory costs more than decoding what is put in.
    """

    def __init__(self, slot_bytes: int) -> None:
        self.slot_bytes = -(-slot_bytes // mmap.PAGESIZE) * mmap.PAGESIZE
        self._memory = mmap.mmap(-1, mmap.PAGESIZE + SLOTS * self.slot_bytes)
        #: Set by the worker that fills the slot, cleared when nothing refers to it any more.
        self.busy = np.frombuffer(self._memory, np.uint8, SLOTS)
        #: What this worker fills or filled: its own references count, too.
        self._filled: dict[int, weakref.ref[Array]] = {}
        self.key = len(_SLOTS)
        _SLOTS.append(weakref.ref(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(None), ()  # only a process that was forked shares it

    def buffer(self, slot: int) -> Array:
        """The memory of a slot, as an array of its own."""
        return np.frombuffer(self._memory, np.uint8, self.slot_bytes, mmap.PAGESIZE + slot * self.slot_bytes)

    def room(self, own: range) -> _Room | None:
        """One of a worker's slots that nothing refers to; None if there is none."""
        for slot in own:
            filled = self._filled.get(slot)
            if not self.busy[slot] and (filled is None or filled() is None):
                room = _Room(self.buffer(slot), (self.key, slot))
                self._filled[slot] = weakref.ref(room.memory)
                return room
        return None

    def claimed(self, slot: int) -> Array:
        """The memory of a slot, which is free when nothing refers to the array any more."""
        memory = self.buffer(slot)
        weakref.finalize(memory, self.busy.__setitem__, slot, 0).atexit = False
        return memory


_SLOTS: list[weakref.ref[_Slots]] = []


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a tensor is in the memory that is sent."""

    start: int
    size: int
    dtype: Any
    shape: Any


class _Room:
    """Memory that is filled from its beginning, and by what another process finds it."""

    def __init__(self, memory: Array, sent: Any) -> None:
        self.memory = memory
        self.sent = sent
        self._used = 0

    def allocate(self, size: int) -> Array:
        """Return memory in it, or new memory where it is full."""
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
        """Return where a tensor is, which is copied unless it is there already."""
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
    """A tree of tensors that is sent as one piece of shared memory."""

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
    """The tree with each leaf of a kind converted."""
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
