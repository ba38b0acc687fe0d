"""Replies of a process that a model has taken over are not trusted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.core.inference.toy_models import BATCH, INTERFACE, Interruption

from collidium.inference import sandbox
from collidium.inference.messages import Code, ModelRefused
from collidium.inference.sandbox import CallBatch, SandboxLimits, opened

WORKER = """
import socket, struct, sys, time
import numpy as np
from collidium.inference.messages import *
def work(seconds=0.3):
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass
def raw(data, size=None):
    connection.sendall(struct.pack("<Q", len(data) if size is None else size) + data)
connection = socket.socket(fileno=0)
channel = MessageChannel(connection)
send = channel.send
def receive(kind):
    return channel.receive(kind, largest=2**40)
loaded = Loaded(1, 1, 4, 1, 17, {"Neg": 1})
done = Done([1], [1])
predicted = Predicted([[Sent.of(np.zeros((3, 1), np.float32))]])
send(Started([]))
receive(Load)
"""
LOADED = "send(loaded); send(Ready())\n"
REQUEST = "receive(Predict); send(Ready()); receive(None); "
#: Invalid replies: frames that claim to be larger than memory, or are when decoded; negative numbers, and
#: replies to requests that were not made.
FORGED = {
    "nothing": "sys.exit()",
    "huge": "raw(b'', 2**62)",
    "large": "raw(b'', 2**25)",
    "not_msgpack": "raw(bytes(range(200, 256)))",
    "nested": "raw(b'\\x91' * 3_000_000)",
    "negative_size": "send(Loaded(-1, 1, 4, 1, 17, {}))",
    "many_operators": "send(Loaded(1, 1, 4, 1, 17, {str(number): 1 for number in range(100_000)}))",
    "long_operator": "send(Loaded(1, 1, 4, 1, 17, {'N' * 1_000_000: 1}))",
    "unprintable_operator": "send(Loaded(1, 1, 4, 1, 17, {'\\x1b[2J': 1}))",
    "another_reply": "send(done)",
    "another_code": "send(Failed('you have won', ''))",
    "early_reply": LOADED + "send(done)",
    "two_readies": LOADED + "receive(Predict); send(Ready()); send(Ready())",
    "negative_time": LOADED + REQUEST + "send(Done([-1], [1]))",
    "many_times": LOADED + REQUEST + "send(Done([1, 1], [1])); receive(None); send(predicted)",
    "many_calls": LOADED + REQUEST + "send(done); receive(None); send(Predicted([[]] * 1_000_000))",
    "many_arrays": LOADED
    + REQUEST
    + "send(done); receive(None); send(Predicted([predicted.outputs[0] * 9]))",
    "another_shape": LOADED + REQUEST + "send(done); receive(None); "
    "send(Predicted([[Sent('float32', (2**62, 4), memoryview(b''))]]))",
    "objects": LOADED + REQUEST + "send(done); receive(None); "
    "send(Predicted([[Sent('object', (3, 1), memoryview(bytes(24)))]]))",
}
#: Work outside of calls.
HIDDEN = {
    "before": "receive(Predict); work(); send(Ready()); receive(None); send(done); receive(None); "
    "send(predicted)",
    "during": REQUEST + "work(); send(done); receive(None); send(predicted)",
    "after": REQUEST + "send(done); receive(None); work(); send(predicted)",
}


def code_of(
    behaviour: str,
    place: Path,
    patch: pytest.MonkeyPatch,
    *,
    limits: SandboxLimits = SandboxLimits(),  # noqa: B008 -- frozen
    details: bool = False,
) -> ModelRefused:
    (place / "worker.py").write_text(WORKER + behaviour + "\nchannel.receive(None, largest=2**40)\n")
    patch.setattr(sandbox, "_WORKER", place / "worker.py")
    with pytest.raises(ModelRefused) as raised, opened(b"", INTERFACE, limits, details=details) as box:
        box.predict([BATCH])
    return raised.value


@pytest.mark.parametrize("name", FORGED)
def test_forged_replies_are_rejected(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert code_of(FORGED[name], tmp_path, monkeypatch).code == Code.CRASHED


@pytest.mark.parametrize("name", HIDDEN)
def test_work_outside_of_calls_is_detected(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reply is sent after the work, so the result does not depend on when it is read."""
    assert code_of(LOADED + HIDDEN[name], tmp_path, monkeypatch).code == Code.HIDDEN_WORK


@pytest.mark.parametrize("details", [True, False])
def test_a_forged_detail_leaks_nothing(
    details: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = code_of("send(Failed('run_failed', 'the event'))", tmp_path, monkeypatch, details=details)
    assert error.code == Code.RUN_FAILED
    assert ("the event" in str(error)) == details


def test_a_slow_reply_does_not_extend_the_deadline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drip = LOADED + "raw(b'', 2**22)\nwhile True: connection.sendall(b' ')"
    assert code_of(drip, tmp_path, monkeypatch, limits=SandboxLimits(call_seconds=1)).code == Code.TIME


def test_a_process_that_closes_its_socket_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "_ENDING_SECONDS", 0.1)
    closing = LOADED + "connection.close(); time.sleep(3600)"
    assert code_of(closing, tmp_path, monkeypatch).code == Code.CRASHED


def test_on_wait_can_end_a_send(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process reads nothing, so that sending blocks."""
    interruption = Interruption()
    large = CallBatch(3, [np.zeros((3, 4), np.float32), np.zeros(2**24, np.int8)])
    (tmp_path / "worker.py").write_text(WORKER + LOADED + "time.sleep(3600)")
    monkeypatch.setattr(sandbox, "_WORKER", tmp_path / "worker.py")
    with opened(b"", INTERFACE, SandboxLimits(on_wait=interruption), details=False) as box:
        interruption.armed = True
        with pytest.raises(InterruptedError):
            box.predict([large])
