"""Why a model is refused: a fixed list of codes, so that nothing of hidden events is in an error."""

from __future__ import annotations

from enum import StrEnum

from collidium.errors import InvalidInput


class Code(StrEnum):
    """Why a model is refused, or a run of it; the text is all that its author reads of a hidden run."""

    text: str

    def __new__(cls, value: str, text: str) -> Code:
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

    @classmethod
    def of(cls, value: str) -> Code:
        """The code of that name. Raises ValueError."""
        for code in cls:
            if code.value == value:
                return code
        raise ValueError(value)


class ModelRefused(InvalidInput):
    """A model, or a run of it, is refused.

    Parameters
    ----------
    code
        Why.
    reason
        What was wrong where; empty for runs on hidden events.
    """

    title = "Model refused"

    def __init__(self, code: Code, reason: str = "") -> None:
        text = f"{code.text} {reason}".strip()
        super().__init__(text, errors=[{"code": code.value, "detail": text}])
        self.code = code
        self.reason = reason
