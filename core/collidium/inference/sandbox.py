"""Runs a model in a process without network and files, on one core, with limits of memory and time.

Everything that the process sends is untrusted: the model may have taken it over.
"""

from __future__ import annotations

import math
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy.typing as npt
from msgspec import Struct

from collidium.errors import CollidiumError, ConfigurationError
from collidium.inference import messages
from collidium.inference.cores import running_core
from collidium.inference.messages import Code, Components, InputSpec, ModelRefused, OutputSpec
from collidium.runtime import confinement as confining
from collidium.runtime.confinement import cpu_seconds_of, has_run_out, kill, limit_cgroup, make_cgroup
from collidium.runtime.subprocesses import signal_group

__all__ = [
    "CallBatch",
    "Facts",
    "Interface",
    "Killed",
    "Sandbox",
    "SandboxLimits",
    "SandboxOutcome",
    "Unconfined",
    "opened",
]

MAX_MODEL_BYTES: Final = 100_000_000
_WORKER: Final = Path(__file__).with_name("worker.py")
_CGROUP: Final = "collidium-model-"
#: Restrictions that a server requires unless a setting allows less: hidden events could leak otherwise.
CONFINED_BY: Final = ("calls", "files", "network")
#: Memory that libraries take before a model is read, in addition to the limit.
_LIBRARIES_BYTES: Final = 256 * 1024**2
#: Maximum size of replies, without the outputs of batches.
_REPLY_BYTES: Final = 4 * 1024**2
#: A process that has closed its socket must end within this time.
_ENDING_SECONDS: Final = 10.0
#: CPU time that a process may use in addition to that of its calls: a fraction of it, and seconds per byte
#: that is received or sent, per call and per message. Usual overheads are about a third of these.
HIDDEN_WORK: Final = 0.05
_OVERHEAD_SECONDS: Final = (2.5e-9, 25e-6, 5e-3)

_Message = TypeVar("_Message")


class SandboxLimits(Struct, frozen=True):
    """Limits of a sandbox. Times are wall-clock."""

    memory_bytes: int = 4 * 1024**3
    #: Time to start, and to parse and load the model.
    load_seconds: float = 60.0
    #: Time of one call of :meth:`Sandbox.predict`.
    call_seconds: float = 600.0
    #: Time of all calls, from when the model was loaded.
    total_seconds: float = math.inf
    #: Called before each call and each second of it; an exception ends the sandbox.
    on_wait: Callable[[], None] | None = None
    #: Required restrictions of the process, see :class:`Facts`.
    confined_by: tuple[str, ...] = ()


class Unconfined(CollidiumError):
    """This machine does not support the required restrictions of models."""


class Killed(CollidiumError):
    """The process of a model was killed by something else than its limits: the model is not at fault."""

    def __init__(self) -> None:
        super().__init__(
            "the process of the model was killed from outside, maybe because the machine has no memory left: "
            "run it again"
        )


class Facts(Struct, frozen=True):
    """The size of a model as leaderboards show it, and a summary of its graph.

    Parameters
    ----------
    n_params
        Numbers in the file, or a quarter of their bytes if that is more, including those of post-processing.
        Trees have two per split and one per weight of a leaf.
    numbers, number_bytes, file_bytes
        Numbers stored in the graph, their bytes, and the size of the file.
    nodes, opset, operators
        Number of nodes, opset and nodes by operator, of the graph and its subgraphs.
    confined_by
        Restrictions of the process on this machine: ``network``, ``files``, ``processes``, ...
    """

    n_params: int
    numbers: int
    number_bytes: int
    file_bytes: int
    nodes: int
    opset: int
    operators: dict[str, int]
    confined_by: tuple[str, ...]


class CallBatch(Struct, frozen=True):
    """Inputs of a call in the order of the manifest, and the number of rows of each output."""

    rows: int
    arrays: Sequence[npt.NDArray[Any]]

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.arrays)


class SandboxOutcome(Struct, frozen=True):
    """The outputs of a batch, of shape (rows, columns) or, for tracks, (rows,), and its times.

    Times include post-processing, and exclude transfer.
    """

    outputs: list[npt.NDArray[Any]]
    cpu_seconds: float
    wall_seconds: float


class Interface(Struct, frozen=True):
    """Inputs and outputs of a graph according to the manifest."""

    inputs: list[InputSpec]
    outputs: list[OutputSpec]
    edges: Components | None = None


@contextmanager
def opened(
    content: bytes,
    interface: Interface | None,
    limits: SandboxLimits,
    *,
    details: bool,
    core: int | None = None,
) -> Iterator[Sandbox]:
    """Load an ONNX model in a fresh process, which ends with the context.

    Parameters
    ----------
    content
        The file.
    interface
        The required inputs and outputs; None: the model is counted and not loaded.
    limits
        Limits of the process.
    details
        Whether errors have a text in addition to their code; must be False for hidden events.
    core
        A core that the caller holds (:func:`~.cores.timing_core`), to which the process is bound; default: a
        core that is not used for timing.

    Raises
    ------
    ModelRefused
        If the model cannot be loaded.
    ConfigurationError
        If onnxruntime is not installed.
    Unconfined
        If a required restriction is not supported. The process then has not received the model.
    """
    if len(content) > MAX_MODEL_BYTES:
        raise ModelRefused(Code.TOO_LARGE, f"It has {len(content):,} bytes." if details else "")
    if not is_installed():
        raise ConfigurationError("this machine runs no models: pip install 'collidium[onnx]'")
    has_edges = interface is not None and interface.edges is not None
    with running_core(limits.on_wait) if core is None else nullcontext(core) as core:
        sandbox = Sandbox(limits, core, has_edges=has_edges)
        try:
            sandbox.load(content, interface, details=details)
            yield sandbox
        finally:
            sandbox.close()


def is_installed() -> bool:
    """Whether models can be run, also if the packages were installed after this process has started."""
    return bool(find_spec("onnxruntime") and find_spec("onnx"))


def confinement() -> tuple[str, ...]:
    """The restrictions of models on this machine, as in :class:`Facts`.

    Starts a process without onnxruntime to detect them. Raises CollidiumError if it does not start.
    """
    words = (os.getpid(), max(os.sched_getaffinity(0)), SandboxLimits().memory_bytes)
    try:
        done = subprocess.run(  # noqa: S603 -- our own script
            (sys.executable, "-I", confining.__file__, *map(str, words)),
            cwd="/",
            env=_environment(),
            capture_output=True,
            check=True,
            text=True,
            timeout=SandboxLimits().load_seconds,
        )
    except subprocess.SubprocessError as error:
        raise CollidiumError(f"a sandbox does not start: {error}") from error
    cgroup = make_cgroup(_CGROUP, os.getpid())
    if cgroup is not None:
        with suppress(OSError):  # in use by a sandbox of this process
            cgroup.rmdir()
    return (*done.stdout.split(), *(("cgroup",) if cgroup else ()))


class Sandbox:
    """A loaded model in a fresh process. All methods block."""

    facts: Facts

    def __init__(self, limits: SandboxLimits, core: int, *, has_edges: bool) -> None:
        self._limits = limits
        self._details = False
        self._interface = Interface([], [])
        self._cgroup: Path | None = None
        self._deadline = time.monotonic() + limits.load_seconds
        ours, theirs = socket.socketpair()
        self._channel = messages.MessageChannel(ours, limits.on_wait)
        words = (os.getpid(), core, limits.memory_bytes, *(("components",) if has_edges else ()))
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 -- our own script
                (sys.executable, "-I", str(_WORKER), *map(str, words)),
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env=_environment(),
                start_new_session=True,
            )

    def load(self, content: bytes, interface: Interface | None, *, details: bool) -> None:
        """Wait for the process to start, check its restrictions, and load the model."""
        try:
            started = self._receive(messages.Started)
        except ModelRefused as error:  # not the fault of the model, which was not sent yet
            raise CollidiumError(f"a sandbox does not start: {error.code.value}") from error
        if missing := set(self._limits.confined_by).difference(started.confined_by):
            raise Unconfined(f"this machine keeps no model from: {', '.join(sorted(missing))}")
        self._cgroup = self._in_cgroup()
        cgroup = ("cgroup",) if self._cgroup else ()
        self._details = details
        self._interface = wanted = interface or Interface([], [])
        request = messages.Load(
            content, wanted.inputs, wanted.outputs, wanted.edges, details, counts_only=interface is None
        )
        self._send(request)
        loaded = self._receive(messages.Loaded)
        self._receive(messages.Ready)
        self._used = self._cpu_seconds()
        self._last = time.monotonic() + self._limits.total_seconds
        self.facts = Facts(
            n_params=loaded.n_params,
            numbers=loaded.numbers,
            number_bytes=loaded.number_bytes,
            file_bytes=len(content),
            nodes=loaded.nodes,
            opset=loaded.opset,
            operators=loaded.operators,
            confined_by=(*started.confined_by, *cgroup),
        )

    def predict(self, batches: Sequence[CallBatch]) -> list[SandboxOutcome]:
        """Run batches one after the other. After ModelRefused the process has ended."""
        began = time.monotonic()
        if began >= self._last:
            raise self._refused(Code.TIME)
        self._deadline = min(began + self._limits.call_seconds, self._last)
        sent = [
            messages.BatchMessage(batch.rows, [messages.Sent.of(array) for array in batch.arrays])
            for batch in batches
        ]
        self._send(messages.Predict(sent))
        self._receive(messages.Ready)
        self._send(None)
        done = self._receive(messages.Done)
        self._send(None)
        rows = sum(batch.rows for batch in batches)
        columns = sum(output.columns for output in self._interface.outputs) + 1
        made = self._receive(messages.Predicted, 8 * rows * columns + _REPLY_BYTES)
        if not len(done.cpu) == len(done.wall) == len(made.outputs) == len(batches):
            raise self._refused(Code.CRASHED)
        outcomes = [
            SandboxOutcome(self._arrays(outputs, batch.rows), cpu / 1e9, wall / 1e9)
            for batch, outputs, cpu, wall in zip(batches, made.outputs, done.cpu, done.wall, strict=True)
        ]
        used, self._used = self._used, self._cpu_seconds()
        moved = sum(array.nbytes for outcome in outcomes for array in outcome.outputs)
        moved += sum(batch.nbytes for batch in batches)
        per_byte, per_call, per_message = _OVERHEAD_SECONDS
        overhead = moved * per_byte + len(batches) * per_call + per_message
        allowed = sum(done.cpu) / 1e9 * (1 + HIDDEN_WORK) + overhead
        if self._used - used > allowed:
            raise self._refused(Code.HIDDEN_WORK)
        return outcomes

    def peak_bytes(self) -> int:
        """The peak memory of the process."""
        with suppress(OSError):
            for line in Path(f"/proc/{self._process.pid}/status").read_text().splitlines():
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
        return 0

    def close(self) -> None:
        """Kill the process and all processes that it may have started."""
        signal_group(self._process.pid, signal.SIGKILL)
        self._process.kill()
        self._process.wait()
        self._channel.close()  # last, because closing also asks the process to end
        if self._cgroup is not None:
            with suppress(OSError):  # processes outside of the session may take a moment to end
                for process in (self._cgroup / "cgroup.procs").read_text().split():
                    kill(int(process))
                self._cgroup.rmdir()
            self._cgroup = None

    def _arrays(self, outputs: Sequence[messages.Sent], rows: int) -> list[npt.NDArray[Any]]:
        """Decode the outputs and check types and shapes again: the process may have been taken over."""
        kinds: list[tuple[str, tuple[int, ...]]] = [
            ("iu" if spec.is_integer else "f", (rows, spec.columns)) for spec in self._interface.outputs
        ]
        if self._interface.edges:
            kinds.append(("i", (rows,)))
        try:
            arrays = [sent.array() for sent in outputs]
        except messages.UNDECODABLE:
            raise self._refused(Code.CRASHED) from None
        found = [(array.dtype.kind, array.shape) for array in arrays]
        if len(found) != len(kinds) or any(
            kind not in allowed or shape != wanted
            for (kind, shape), (allowed, wanted) in zip(found, kinds, strict=True)
        ):
            raise self._refused(Code.CRASHED)
        return arrays

    def _send(self, message: Struct | None) -> None:
        with self._channel_errors():
            self._channel.send(message, self._deadline)

    def _receive(self, kind: type[_Message], largest: int = _REPLY_BYTES) -> _Message:
        with self._channel_errors():
            reply = self._channel.receive(messages.Reply, largest=largest, deadline=self._deadline)
        if isinstance(reply, messages.Failed):
            with suppress(ValueError):
                raise self._refused(Code(reply.code), reply.detail)
        if not isinstance(reply, kind):
            raise self._refused(Code.CRASHED)
        return reply

    @contextmanager
    def _channel_errors(self) -> Iterator[None]:
        """Convert errors of the channel to ModelRefused and Killed."""
        try:
            yield
        except TimeoutError:
            raise self._refused(Code.TIME) from None
        except messages.Closed:
            raise self._death() from None
        except (messages.Oversized, *messages.UNDECODABLE):
            raise self._refused(Code.CRASHED) from None

    def _death(self) -> CollidiumError:
        """Create the error that says why the process has ended."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_ENDING_SECONDS)
        if self._cgroup is not None and has_run_out(self._cgroup):
            return self._refused(Code.MEMORY)
        # It may send no signals, and its own limits end it by others.
        if self._process.returncode == -signal.SIGKILL:
            self.close()
            return Killed()
        return self._refused(Code.TIME if self._process.returncode == -signal.SIGXCPU else Code.CRASHED)

    def _refused(self, code: Code, detail: str = "") -> ModelRefused:
        """End the process and create the error, without details of hidden events that it could leak."""
        self.close()
        return ModelRefused(code, detail if self._details else "")

    def _cpu_seconds(self) -> float:
        try:
            return cpu_seconds_of(self._process.pid)
        except OSError:
            raise self._death() from None

    def _in_cgroup(self) -> Path | None:
        cgroup = make_cgroup(_CGROUP, self._process.pid)
        if cgroup is not None:
            limit_cgroup(cgroup, self._limits.memory_bytes + _LIBRARIES_BYTES)
            (cgroup / "cgroup.procs").write_text(str(self._process.pid))
        return cgroup


def _environment() -> dict[str, str]:
    """The environment of the process, without secrets."""
    own = {"ORT_DISABLE_TELEMETRY": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    # Some operators do not initialize outputs: a model could pass results between calls in freed memory.
    own["GLIBC_TUNABLES"] = "glibc.malloc.perturb=85"
    kept = ("LD_LIBRARY_PATH", "LANG", "LC_ALL")
    return own | {name: os.environ[name] for name in kept if name in os.environ}
