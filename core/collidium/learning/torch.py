# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
"""A stream as a dataset of torch. Needs torch, which this package does not bring."""

from __future__ import annotations

import mmap
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch
from torch.utils.data import IterableDataset, get_worker_info

from collidium.learning.batch import Batch
from collidium.learning.stream import EventStream
from collidium.physics.ragged import ALIGNMENT, Array

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
        made = map(self.transform, self._share())
        return made if get_worker_info() is None else (_Packed(tree, self._slots) for tree in made)

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
        self.key = len(_SLOTS)
        _SLOTS.append(weakref.ref(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(None), ()  # only a process that was forked shares it

    def buffer(self, slot: int) -> Array:
        """The memory of a slot, as an array of its own."""
        return np.frombuffer(self._memory, np.uint8, self.slot_bytes, mmap.PAGESIZE + slot * self.slot_bytes)

    def claimed(self, slot: int) -> Array:
        """The memory of a slot, which is free when nothing refers to the array any more."""
        memory = self.buffer(slot)
        weakref.finalize(memory, self.busy.__setitem__, slot, 0).atexit = False
        return memory


_SLOTS: list[weakref.ref[_Slots]] = []


class _Packed:
    """A tree of tensors that is sent as one piece of shared memory."""

    def __init__(self, tree: Any, slots: _Slots | None) -> None:
        self.tree = tree
        self.slots = slots

    def __reduce__(self) -> tuple[Any, ...]:
        leaves: list[tuple[int, torch.Tensor]] = []
        plan = _planned(self.tree, leaves)
        size = leaves[-1][0] + leaves[-1][1].nbytes if leaves else 0
        slots, worker = self.slots, get_worker_info()
        own = range(worker.id, SLOTS, worker.num_workers)
        slot = next((n for n in own if slots and size <= slots.slot_bytes and not slots.busy[n]), None)
        if slots is None or slot is None:
            memory = torch.empty(size, dtype=torch.uint8)
        else:
            slots.busy[slot] = 1
            memory = torch.from_numpy(slots.buffer(slot))
        for start, leaf in leaves:
            memory[start : start + leaf.nbytes].view(leaf.dtype)[:] = leaf.reshape(-1)
        return _unpacked, (memory, plan) if slots is None or slot is None else ((slots.key, slot), plan)


def _planned(tree: Any, leaves: list[tuple[int, torch.Tensor]]) -> Any:
    """The tree with the place, type and shape of each tensor, which go to ``leaves``."""
    if isinstance(tree, dict):
        return {name: _planned(of, leaves) for name, of in tree.items()}
    if not isinstance(tree, torch.Tensor):
        return tree
    end = leaves[-1][0] + leaves[-1][1].nbytes if leaves else 0
    start = -(-end // ALIGNMENT) * ALIGNMENT
    leaves.append((start, tree))
    return _Place(start, tree.nbytes, tree.dtype, tree.shape)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a tensor is."""

    start: int
    size: int
    dtype: Any
    shape: Any


def _unpacked(memory: Any, plan: Any) -> Any:
    if isinstance(memory, tuple):
        key, slot = memory
        slots = _SLOTS[key]()
        assert slots is not None  # noqa: S101 -- the loader that asks holds them
        memory = torch.from_numpy(slots.claimed(slot))
    if isinstance(plan, dict):
        return {name: _unpacked(memory, of) for name, of in plan.items()}
    if isinstance(plan, _Place):
        return memory[plan.start : plan.start + plan.size].view(plan.dtype).reshape(plan.shape)
    return plan
