"""Timing of models: minima over passes relative to a reference, errors, and invalid measurements."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest
from docs.make_reference_model import PLACE, reference_model
from msgspec import structs
from tests.core.inference.hostile_models import text
from tests.core.inference.toy_models import INTERFACE, events, example, task

from collidium.inference import timing
from collidium.inference.cores import timing_core
from collidium.inference.messages import Code, ModelRefused
from collidium.inference.running import open_model, run_batches
from collidium.inference.sandbox import CallBatch, Sandbox, SandboxLimits, SandboxOutcome, opened
from collidium.inference.timing import TimedBlock, combine, time_block


def test_a_block_times_every_event(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is: then a server would repeat it."""
    monkeypatch.setattr(timing, "_MAX_SCATTER", np.inf)
    monkeypatch.setattr(timing, "_MIN_SHARE", 0)
    made = example("jets", "deepsets")
    seen: list[tuple[int, int]] = []
    block = time_block(
        *(made, task("jets"), events(made, last=6)),
        passes=2,
        seed=1,
        progress=lambda *done: seen.append(done),
    )
    assert len(block.seconds) == 6
    assert all(seconds > 0 for seconds in block.seconds)
    assert block.cpu_seconds > 0 < block.wall_seconds
    assert block.memory_bytes > 2**20
    assert seen[-1] == (4, 4)


def test_the_first_call_of_a_pass_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """It costs more, and of few events it would look like work between calls."""

    def slow_at_first(sandbox: Sandbox, batches: Iterable[CallBatch]) -> Iterator[SandboxOutcome]:
        for number, outcome in enumerate(run_batches(sandbox, batches)):
            yield structs.replace(outcome, cpu_seconds=1e-3 if number else 1.0)

    monkeypatch.setattr(timing, "run_batches", slow_at_first)
    made = example("jets", "deepsets")
    assert time_block(made, task("jets"), events(made, last=2)).cpu_seconds == pytest.approx(1e-3)


def test_energy_is_measured_per_call(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where the kernel counts it: the mean over passes, without those in which a counter began again."""
    monkeypatch.setattr(timing, "_MAX_SCATTER", np.inf)
    monkeypatch.setattr(timing, "_MIN_SHARE", 0)
    # Warm-up, then 3, 5 and less than nothing; of two processors.
    counts = iter([0, 9, 9, 9, 10, 13, 20, 25, 25, 1])
    monkeypatch.setattr(timing, "_energy", lambda: [next(counts) * 1_000_000] * 2)
    made = example("jets", "trees")
    block = time_block(made, task("jets"), events(made, last=4), passes=3)
    assert block.joules == pytest.approx((3 + 5) / 2 * 2 / 5), "of four events and the call before them"
    monkeypatch.undo()
    for number, count in enumerate((7, 8)):
        (tmp_path / f"intel-rapl:{number}").mkdir()
        (tmp_path / f"intel-rapl:{number}" / "energy_uj").write_text(f"{count}\n")
    monkeypatch.setattr(timing, "POWERCAP", tmp_path)
    assert timing._energy() == [7, 8]
    (tmp_path / "intel-rapl:1" / "energy_uj").write_text("?")
    assert timing._energy() == []


def test_a_timed_model_has_a_core_of_its_own() -> None:
    """Another process that times waits, and asks whether it is to; models that are run have other cores."""
    made, asked = example("jets", "deepsets"), list[bool]()

    def look() -> None:
        asked.append(True)
        raise InterruptedError

    with timing_core() as core:
        with pytest.raises(InterruptedError):
            time_block(made, task("jets"), events(made, last=2), limits=SandboxLimits(on_wait=look))
        if len(os.sched_getaffinity(0)) > 1:
            with open_model(made, task("jets")) as sandbox:
                assert os.sched_getaffinity(sandbox._process.pid).isdisjoint({core})
    assert asked == [True]
    with timing_core(on_wait=look):
        pass


def test_freed_memory_is_not_read() -> None:
    """A product over no axis writes nothing: its result was what the memory held, as of the call before."""
    made = text(
        "bytes = Cast <to = 2> (x) left = Slice(bytes, zero, zero, last) "
        "right = Transpose <perm = [1, 0]> (left) old = MatMulInteger(left, right) "
        "found = ReduceMax <keepdims = 0> (old) whole = Cast <to = 6> (x) "
        "largest = ReduceMax <keepdims = 0> (whole) later = Min(found, largest) "
        "next = Max(later, largest) new = Expand(next, shape) written = ReduceMax <axes = [1]> (new) "
        "none = Sub(written, written) answer = Add(none, found) y = Cast <to = 1> (answer)",
        zero=np.array([0]),
        last=np.array([1]),
        shape=np.array([64, 64]),
    )
    with opened(made.SerializeToString(), INTERFACE, SandboxLimits(), details=True) as sandbox:
        outcomes = sandbox.predict([CallBatch(64, [np.full((64, 4), each, np.float32)]) for each in range(8)])
    assert len({found for outcome in outcomes for found in outcome.outputs[0].ravel()}) == 1


def summary(cpu: list[list[float]], reference: list[float]) -> TimedBlock:
    return timing._summary(np.array(cpu), np.array(cpu), np.array(reference), 1)


def test_seconds_are_minima_on_the_nominal_machine() -> None:
    half = timing.NOMINAL_SECONDS / 2  # a machine twice as fast
    block = summary([[1.0, 3.1], [1.2, 3.0]], [half, half])
    assert block.seconds == pytest.approx([2.0, 6.0])
    assert block.cpu_seconds == pytest.approx(2.0)


def test_a_busy_machine_is_detected() -> None:
    with pytest.raises(ModelRefused) as raised:
        summary([[1.0], [1.0]], [1.0, 1.2])
    assert raised.value.code == Code.NOISY


def test_work_moved_between_events_is_detected() -> None:
    """As of a process that reports all of a pass's work for another event each time."""
    with pytest.raises(ModelRefused) as raised:
        summary([[0.0, 2.0], [2.0, 0.0]], [1.0, 1.0])
    assert raised.value.code == Code.HIDDEN_WORK


def block(*seconds: float) -> TimedBlock:
    return TimedBlock(list(seconds), 1.0, 1.0, 1, 1.0, 0.0)


def test_blocks_are_combined_with_their_errors() -> None:
    made = combine([block(1.0, 3.0), block(2.0, 4.0), block(1.1, 3.1)])
    assert made.seconds == pytest.approx(2.1)
    of_events = np.std([4.1 / 3, 10.1 / 3], ddof=1) / np.sqrt(2)
    of_blocks = np.std([2.0, 3.0, 2.1], ddof=1)
    assert made.error == pytest.approx(np.sqrt(of_events**2 + of_blocks**2 / 2 + (0.02 * 2.1) ** 2))


def test_wall_time_and_memory_have_one_digit() -> None:
    blocks = [structs.replace(block(1.0), wall_seconds=each, memory_bytes=123_456) for each in (1.236, 9, 1)]
    assert combine(blocks).in_addition == {"wall_seconds": 1.0, "memory_bytes": 100_000, "joules": None}


def test_the_error_is_at_least_two_percent() -> None:
    assert combine([block(1.0)]).error == pytest.approx(0.02)


def test_the_reference_is_what_its_script_writes() -> None:
    assert PLACE.read_bytes() == reference_model()
