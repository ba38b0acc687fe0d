"""A model in a process of its own: no network, no files, limits of memory and time, one core.

The contract between an evaluation and what runs its model is :class:`Sandbox`: arrays in, arrays and times
out. A second kind of model, a program in a container, is another class with the same methods.
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
from typing import Any, Final, Protocol, TypeVar

import numpy.typing as npt
from msgspec import Struct

from collidium.errors import CollidiumError, ConfigurationError
from collidium.inference import messages
from collidium.inference.cores import running_core
from collidium.inference.messages import Code, Edges, InputSpec, ModelRefused, OutputSpec
from collidium.runtime import confinement as confining
from collidium.runtime.confinement import cpu_seconds_of, has_run_out, kill, limit_cgroup, make_cgroup
from collidium.runtime.subprocesses import signal_group

__all__ = ["Batch", "Facts", "Interface", "Limits", "Outcome", "Sandbox", "Unconfined", "opened"]

#: The largest file of a model.
MAX_MODEL_BYTES: Final = 100_000_000
_WORKER: Final = Path(__file__).with_name("worker.py")
_CGROUP: Final = "collidium-model-"
#: What models cannot reach, unless a setting allows it: hidden events would leave by it.
CONFINED_BY: Final = ("calls", "files", "network")
#: Beyond the limit of memory: what libraries take before a model is read.
_ROOM: Final = 256 * 1024**2
_SMALL_REPLY: Final = 4 * 1024**2
#: A process that has closed its socket ends within so long, or is ended.
_ENDING_SECONDS: Final = 10.0
#: A process may use so much more CPU than its calls: a fraction, and seconds for a byte that it gets or
#: sends, for a call and for a message. The overhead is about a third of that.
HIDDEN_WORK: Final = 0.05
_OVERHEAD_SECONDS: Final = (2.5e-9, 25e-6, 5e-3)

_Message = TypeVar("_Message")


class Limits(Struct, frozen=True):
    """Limits of a sandbox."""

    memory_bytes: int = 4 * 1024**3
    #: To start, to parse and to load a model; wall-clock.
    load_seconds: float = 60.0
    #: Of one call of :meth:`Sandbox.predict`; wall-clock.
    call_seconds: float = 600.0
    #: Of all calls together, from when the model was loaded; wall-clock.
    total_seconds: float = math.inf
    #: Called each second of a call and before it; what it raises ends the sandbox.
    look: Callable[[], None] | None = None
    #: What has to be out of the process's reach, see :class:`Facts`.
    confined_by: tuple[str, ...] = ()


class Unconfined(CollidiumError):
    """This machine does not confine models as far as it has to."""


class Facts(Struct, frozen=True):
    """What a model is: its size as leaderboards show it, and a summary of its graph.

    Parameters
    ----------
    n_params
        Numbers in the file, or a quarter of their bytes if that is more; for trees two for each split and
        one for each leaf's weight; those of post-processing count.
    numbers, number_bytes, file_bytes
        Numbers stored in the graph, their bytes, and the size of the file.
    nodes, opset, operators
        Of the graph and its subgraphs; operators with how many nodes each has.
    confined_by
        What is out of the process's reach on this machine: ``network``, ``files``, ``processes``, ...
    """

    n_params: int
    numbers: int
    number_bytes: int
    file_bytes: int
    nodes: int
    opset: int
    operators: dict[str, int]
    confined_by: tuple[str, ...]


class Batch(Struct, frozen=True):
    """Inputs of one call, in the order of the manifest, and the number of rows of each output."""

    rows: int
    arrays: Sequence[npt.NDArray[Any]]

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.arrays)


class Outcome(Struct, frozen=True):
    """The outputs of one batch, each of shape (rows, columns), tracks of shape (rows,), and their time.

    ``cpu_seconds`` is of the whole process, post-processing included, transfer excluded.
    """

    outputs: list[npt.NDArray[Any]]
    cpu_seconds: float
    wall_seconds: float


class Interface(Struct, frozen=True):
    """Inputs and outputs of a graph, as the manifest has them."""

    inputs: list[InputSpec]
    outputs: list[OutputSpec]
    edges: Edges | None = None


class Sandbox(Protocol):
    """A loaded model in a fresh process. All methods block."""

    facts: Facts

    def predict(self, batches: Sequence[Batch]) -> list[Outcome]:
        """Run batches one after the other. After ModelRefused the process has ended."""
        ...

    def peak_bytes(self) -> int:
        """The most memory that the process has held."""
        ...


@contextmanager
def opened(
    content: bytes, interface: Interface | None, limits: Limits, *, details: bool, core: int | None = None
) -> Iterator[Sandbox]:
    """Load an ONNX model in a fresh process, which ends with the context.

    Parameters
    ----------
    content
        The file.
    interface
        What its inputs and outputs must be; None: the model is counted, and not loaded.
    limits
        Of the process.
    details
        Whether refusals say more than their code: never for hidden events.
    core
        The core that the process is bound to, which the caller holds (:func:`timing_core`); default: one that
        no timed model has.

    Raises
    ------
    ModelRefused
        Where the model cannot be loaded.
    ConfigurationError
        Without onnxruntime.
    Unconfined
        Before a byte of the model is read, where what the limits name is in its reach.
    """
    if len(content) > MAX_MODEL_BYTES:
        raise ModelRefused(Code.TOO_LARGE, f"It has {len(content):,} bytes." if details else "")
    if not (find_spec("onnxruntime") and find_spec("onnx")):
        raise ConfigurationError("this machine runs no models: pip install 'collidium[onnx]'")
    has_edges = interface is not None and interface.edges is not None
    with running_core(limits.look) if core is None else nullcontext(core) as core:
        process = _Process(limits, core, has_edges=has_edges)
        try:
            process.load(content, interface, details=details)
            yield process
        finally:
            process.close()


def confinement() -> tuple[str, ...]:
    """What is out of the reach of models on this machine, as :class:`Facts` has it.

    Found out by a process without onnxruntime. Raises CollidiumError where none starts.
    """
    words = (os.getpid(), max(os.sched_getaffinity(0)), Limits().memory_bytes)
    try:
        done = subprocess.run(  # noqa: S603 -- our own script
            (sys.executable, "-I", confining.__file__, *map(str, words)),
            cwd="/",
            env=_environment(),
            capture_output=True,
            check=True,
            text=True,
            timeout=Limits().load_seconds,
        )
    except subprocess.SubprocessError as error:
        raise CollidiumError(f"a sandbox does not start: {error}") from error
    cgroup = make_cgroup(_CGROUP, os.getpid())
    if cgroup is not None:
        with suppress(OSError):  # a sandbox of this process is in it
            cgroup.rmdir()
    return (*done.stdout.split(), *(("cgroup",) if cgroup else ()))


class _Process:
    """The sandboxed process, our end of its socket, and its cgroup where there can be one."""

    facts: Facts

    def __init__(self, limits: Limits, core: int, *, has_edges: bool) -> None:
        self._limits = limits
        self._details = False
        self._interface = Interface([], [])
        self._cgroup: Path | None = None
        self._deadline = time.monotonic() + limits.load_seconds
        ours, theirs = socket.socketpair()
        self._channel = messages.Channel(ours, limits.look)
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
        try:
            started = self._receive(messages.Started)
        except ModelRefused as error:  # no byte of a model was read yet
            raise CollidiumError(f"a sandbox does not start: {error.code.value}") from error
        if missing := set(self._limits.confined_by).difference(started.confined_by):
            raise Unconfined(f"this machine keeps no model from: {', '.join(sorted(missing))}")
        self._cgroup = self._in_cgroup()
        cgroup = ("cgroup",) if self._cgroup else ()
        self._details = details
        self._interface = wanted = interface or Interface([], [])
        request = messages.Load(
            *(content, wanted.inputs, wanted.outputs, wanted.edges, details), counts_only=interface is None
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

    def predict(self, batches: Sequence[Batch]) -> list[Outcome]:
        began = time.monotonic()
        if began >= self._last:
            raise self._refused(Code.TIME)
        self._deadline = min(began + self._limits.call_seconds, self._last)
        sent = [
            messages.Batch(batch.rows, [messages.Sent.of(array) for array in batch.arrays])
            for batch in batches
        ]
        self._send(messages.Predict(sent))
        self._receive(messages.Ready)
        self._send(None)
        done = self._receive(messages.Done)
        self._send(None)
        rows = sum(batch.rows for batch in batches)
        columns = sum(output.columns for output in self._interface.outputs) + 1
        made = self._receive(messages.Predicted, 8 * rows * columns + _SMALL_REPLY)
        if not len(done.cpu) == len(done.wall) == len(made.outputs) == len(batches):
            raise self._refused(Code.CRASHED)
        outcomes = [
            Outcome(self._arrays(outputs, batch.rows), cpu / 1e9, wall / 1e9)
            for batch, outputs, cpu, wall in zip(batches, made.outputs, done.cpu, done.wall, strict=True)
        ]
        used, self._used = self._used, self._cpu_seconds()
        moved = sum(array.nbytes for outcome in outcomes for array in outcome.outputs)
        moved += sum(batch.nbytes for batch in batches)
        of_byte, of_each, of_message = _OVERHEAD_SECONDS
        allowed = (
            sum(done.cpu) / 1e9 * (1 + HIDDEN_WORK) + moved * of_byte + len(batches) * of_each + of_message
        )
        if self._used - used > allowed:
            raise self._refused(Code.HIDDEN_WORK)
        return outcomes

    def peak_bytes(self) -> int:
        with suppress(OSError):
            for line in Path(f"/proc/{self._process.pid}/status").read_text().splitlines():
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
        return 0

    def close(self) -> None:
        signal_group(self._process.pid, signal.SIGKILL)
        self._process.kill()
        self._process.wait()
        self._channel.close()  # before, it would be asked to end, too
        if self._cgroup is not None:
            with suppress(OSError):  # what has left the session, and ends before long
                for process in (self._cgroup / "cgroup.procs").read_text().split():
                    kill(int(process))
                self._cgroup.rmdir()
            self._cgroup = None

    def _arrays(self, outputs: Sequence[messages.Sent], rows: int) -> list[npt.NDArray[Any]]:
        """The outputs; the process has checked them, unless the model has taken it over."""
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
        with self._answering():
            self._channel.send(message, self._deadline)

    def _receive(self, kind: type[_Message], largest: int = _SMALL_REPLY) -> _Message:
        with self._answering():
            reply = self._channel.receive(messages.Reply, largest=largest, deadline=self._deadline)
        if isinstance(reply, messages.Failed):
            with suppress(ValueError):
                raise self._refused(Code.of(reply.code), reply.detail)
        if not isinstance(reply, kind):
            raise self._refused(Code.CRASHED)
        return reply

    @contextmanager
    def _answering(self) -> Iterator[None]:
        """Make a refusal of what becomes of the process."""
        try:
            yield
        except TimeoutError:
            raise self._refused(Code.TIME) from None
        except messages.Closed:
            raise self._refused(self._death()) from None
        except (messages.Oversized, *messages.UNDECODABLE):
            raise self._refused(Code.CRASHED) from None

    def _death(self) -> Code:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_ENDING_SECONDS)
        if self._cgroup is not None and has_run_out(self._cgroup):
            return Code.MEMORY
        return Code.TIME if self._process.returncode == -signal.SIGXCPU else Code.CRASHED

    def _refused(self, code: Code, detail: str = "") -> ModelRefused:
        """A refusal; what a process that was taken over sends as detail could be what is hidden."""
        self.close()
        return ModelRefused(code, detail if self._details else "")

    def _cpu_seconds(self) -> float:
        try:
            return cpu_seconds_of(self._process.pid)
        except OSError:
            raise self._refused(self._death()) from None

    def _in_cgroup(self) -> Path | None:
        cgroup = make_cgroup(_CGROUP, self._process.pid)
        if cgroup is not None:
            limit_cgroup(cgroup, self._limits.memory_bytes + _ROOM)
            (cgroup / "cgroup.procs").write_text(str(self._process.pid))
        return cgroup


def _environment() -> dict[str, str]:
    """No secrets, no telemetry of onnxruntime, one thread for each library, no memory with old content."""
    own = {"ORT_DISABLE_TELEMETRY": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    # Some operators leave outputs as they were allocated: a model could keep results in them between calls.
    own["GLIBC_TUNABLES"] = "glibc.malloc.perturb=85"
    kept = ("LD_LIBRARY_PATH", "LANG", "LC_ALL")
    return own | {name: os.environ[name] for name in kept if name in os.environ}
