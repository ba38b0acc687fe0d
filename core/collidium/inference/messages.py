"""Messages between a sandboxed process and its parent: msgpack frames of plain data and bytes."""

from __future__ import annotations

import math
import socket
import struct
import time
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Annotated, Any, Final, Literal

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Meta, Struct, msgpack

from collidium.errors import InvalidInput

_LENGTH: Final = struct.Struct("<Q")

#: Maximum batches of a message, arrays of a batch, and axes of an array. A model may have taken over the
#: process that replies, and a byte of msgpack may become an object of a hundred bytes.
MAX_CALLS: Final = 256
_MAX_ARRAYS: Final = 300
_MAX_AXES: Final = 8
_MAX_OPERATORS: Final = 500
#: Interval at which a waiting channel calls ``on_wait``.
_INTERVAL_SECONDS: Final = 1.0

Array = npt.NDArray[Any]
Count = Annotated[int, Meta(ge=0, le=2**60)]
Name = Annotated[str, Meta(min_length=1, max_length=200)]
#: Restricted because operators are stored and shown.
Operator = Annotated[str, Meta(max_length=200, pattern=r"^[\w.]+\Z")]
#: Types of arrays by name.
DTYPES: Final[Mapping[str, np.dtype[Any]]] = {
    name: np.dtype(name)
    for name in (
        *("float16", "float32", "float64", "bool", "int8", "int16", "int32", "int64"),
        *("uint8", "uint16", "uint32", "uint64"),
    )
}


class Code(StrEnum):
    """Why a model or a run of it is rejected. The text is all that authors see of a run on hidden events."""

    text: str

    def __new__(cls, value: str, text: str = "") -> Code:
        code = str.__new__(cls, value)
        code._value_ = value
        code.text = text
        return code

    # The file
    TOO_LARGE = "too_large", "The model is larger than 100 MB."
    NOT_ONNX = "not_onnx", "The file is not a whole ONNX model."
    EXTERNAL_DATA = "external_data", "Tensors refer to other files; store them in the model."
    SPARSE_TENSOR = "sparse_tensor", "Sparse tensors are not accepted."
    TENSOR_TYPE = "tensor_type", "Values are tensors of numbers of 8 to 64 bits or bool, not text or others."
    FUNCTIONS = "functions", "Model functions and training information are not accepted; export without them."
    TOO_MANY_NODES = "too_many_nodes", "The graph has more than 20,000 nodes."
    DOMAIN = "domain", "Operators of domains other than ai.onnx and ai.onnx.ml are not accepted."
    OPSET = "opset", "The opset of the model is older than 13, or not known."
    OPERATOR = "operator", "An operator is not on the list, as those that are random."
    INTERFACE = "interface", "Inputs or outputs of the graph differ from the manifest."
    LOAD_FAILED = "load_failed", "onnxruntime does not accept the graph."
    # A run
    RUN_FAILED = "run_failed", "The graph failed on an event."
    OUTPUT_SHAPE = "output_shape", "An output has another shape than its rows."
    OUTPUT_TYPE = "output_type", "An output has another type than its column."
    NOT_FINITE = "not_finite", "An output is not finite."
    OUT_OF_BOUNDS = "out_of_bounds", "An output is out of the bounds of its column."
    TOO_MANY_EDGES = "too_many_edges", "An event has more than 5,000,000 edges."
    MEMORY = "memory", "The model used more memory than allowed."
    TIME = "time", "The model took longer than allowed."
    CRASHED = "crashed", "The model ended its process, or took it over."
    # A measurement
    UNSTEADY = "unsteady", "Outputs differ between passes over the same events."
    HIDDEN_WORK = "hidden_work", "The model's process worked between calls."
    NOISY = "noisy", "The machine was too busy to measure; try again."


class ModelRefused(InvalidInput):
    """A model, or a run of it, is rejected.

    Parameters
    ----------
    code
        The kind of problem.
    reason
        The details; empty for runs on hidden events.
    """

    title = "Model refused"

    def __init__(self, code: Code, reason: str = "") -> None:
        text = f"{code.text} {reason}".strip()
        super().__init__(text, errors=[{"code": code.value, "detail": text}])
        self.code = code
        self.reason = reason


class Sent(Struct, frozen=True, array_like=True):
    """An array: the name of its type, its shape, and its bytes in C order."""

    dtype: str
    shape: Annotated[tuple[int, ...], Meta(max_length=_MAX_AXES)]
    data: memoryview

    @classmethod
    def of(cls, array: Array) -> Sent:
        array = np.ascontiguousarray(array)
        return cls(array.dtype.name, array.shape, array.reshape(-1).view(np.uint8).data)

    def array(self) -> Array:
        """Return an array that shares the frame's memory. Raises ValueError and KeyError."""
        return np.frombuffer(self.data, DTYPES[self.dtype]).reshape(self.shape)


class InputSpec(Struct, frozen=True):
    """An input of the graph, with its type and the lengths of its axes after the first."""

    name: str
    dtype: str
    tail: tuple[int, ...]


class OutputSpec(Struct, frozen=True):
    """An output of the graph, with its number of columns, which are integers or floating-point numbers."""

    name: str
    columns: int
    is_integer: bool


class Components(Struct, frozen=True, forbid_unknown_fields=True):
    """Tracks as connected components: hits that are connected by edges of a score above ``cut``.

    ``edges`` and ``scores`` are outputs of the graph.
    """

    kind: Literal["components"]
    edges: Name
    scores: Name
    cut: float = 0.5
    #: Smaller components are no tracks.
    min_hits: Annotated[int, Meta(ge=1, le=1000)] = 1


# -- requests -------------------------------------------------------------------------------------------


class Load(Struct, frozen=True, tag=True):
    """Parse, check and load a model, or only count it. Errors have texts if ``details``."""

    content: bytes
    inputs: list[InputSpec]
    outputs: list[OutputSpec]
    edges: Components | None
    details: bool
    counts_only: bool


class BatchMessage(Struct, frozen=True, array_like=True):
    """Inputs in the order of the manifest, and the number of rows of each output."""

    rows: int
    arrays: list[Sent]


class Predict(Struct, frozen=True, tag=True):
    """Run batches. The reply is Ready, and after further frames Done and Predicted."""

    batches: list[BatchMessage]


# -- replies --------------------------------------------------------------------------------------------


class Started(Struct, frozen=True, tag=True):
    """The process is confined."""

    confined_by: list[str]


class Loaded(Struct, frozen=True, tag=True):
    """The model is parsed and counted. Ready follows when onnxruntime has loaded it."""

    n_params: Count
    numbers: Count
    number_bytes: Count
    nodes: Count
    opset: Count
    operators: Annotated[dict[Operator, Count], Meta(max_length=_MAX_OPERATORS)]


class Ready(Struct, frozen=True, tag=True):
    """The model is loaded; or batches are in memory, and the next frame starts the measurement."""


class Done(Struct, frozen=True, tag=True):
    """All batches are done: CPU time and wall-clock time of each in nanoseconds."""

    cpu: Annotated[list[Count], Meta(max_length=MAX_CALLS)]
    wall: Annotated[list[Count], Meta(max_length=MAX_CALLS)]


class Predicted(Struct, frozen=True, tag=True):
    """The outputs of each batch."""

    outputs: Annotated[list[Annotated[list[Sent], Meta(max_length=_MAX_ARRAYS)]], Meta(max_length=MAX_CALLS)]


class Failed(Struct, frozen=True, tag=True):
    """A rejection with its code; the process ends."""

    code: str
    detail: str


Request = Load | Predict
Reply = Started | Loaded | Ready | Done | Predicted | Failed


class Closed(Exception):
    """The peer has closed the connection."""


class Oversized(Exception):
    """A frame is larger than the receiver accepts."""


class MessageChannel:
    """One end of a pair of sockets. ``on_wait`` is called each second of waiting, and may raise."""

    def __init__(self, connection: socket.socket, on_wait: Callable[[], None] | None = None) -> None:
        self._connection = connection
        self._on_wait = on_wait

    def send(self, message: Struct | None, deadline: float | None = None) -> None:
        """Send a message. Raises TimeoutError after ``deadline`` (``time.monotonic``), and Closed."""
        data = msgpack.encode(message)
        self._move(self._connection.send, _LENGTH.pack(len(data)), deadline)
        self._move(self._connection.send, data, deadline)

    def receive(self, kind: Any, *, largest: int, deadline: float | None = None) -> Any:
        """Wait for a message. Raises as :meth:`send`, Oversized, and msgspec.DecodeError."""
        size = _LENGTH.unpack(self._exactly(_LENGTH.size, deadline))[0]
        if size > largest:
            raise Oversized(f"a frame of {size} bytes")
        return msgpack.decode(self._exactly(size, deadline), type=kind)

    def close(self) -> None:
        self._connection.close()

    def _exactly(self, size: int, deadline: float | None) -> bytearray:
        data = bytearray(size)
        self._move(self._connection.recv_into, data, deadline)
        return data

    def _move(
        self, move: Callable[[memoryview], int], data: bytes | bytearray, deadline: float | None
    ) -> None:
        """Send all of the data, or receive it."""
        view = memoryview(data)
        while view:
            if self._on_wait:
                self._on_wait()
            self._set_timeout(deadline, _INTERVAL_SECONDS if self._on_wait else math.inf)
            try:
                moved = move(view)
            except TimeoutError:
                continue
            except OSError as error:
                raise Closed from error
            if not moved:
                raise Closed
            view = view[moved:]

    def _set_timeout(self, deadline: float | None, longest: float) -> None:
        """Limit the next call. Raises TimeoutError after the deadline, even if data keeps moving."""
        left = math.inf if deadline is None else deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        shortest = min(left, longest)
        timeout = None if shortest == math.inf else shortest
        if timeout != self._connection.gettimeout():  # settimeout is a system call that a sandbox may lack
            self._connection.settimeout(timeout)


#: Errors of decoding untrusted data.
UNDECODABLE: Final = (msgspec.DecodeError, ValueError, LookupError, TypeError, RecursionError)
