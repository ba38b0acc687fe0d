"""Parses, checks and counts a model's graph without running it; imported only in the sandbox.

Nothing that the file declares is trusted. Traversals are iterative, and stop above the maximum of nodes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import TensorProto

from collidium.inference.messages import Code, InputSpec, ModelRefused

MAX_NODES: Final = 20_000
MIN_OPSET: Final = 13
#: Accepted tensor types and their bytes per value.
BYTES: Final[Mapping[int, int]] = {
    TensorProto.BOOL: 1,
    TensorProto.INT8: 1,
    TensorProto.UINT8: 1,
    TensorProto.INT16: 2,
    TensorProto.UINT16: 2,
    TensorProto.FLOAT16: 2,
    TensorProto.BFLOAT16: 2,
    TensorProto.INT32: 4,
    TensorProto.UINT32: 4,
    TensorProto.FLOAT: 4,
    TensorProto.INT64: 8,
    TensorProto.UINT64: 8,
    TensorProto.DOUBLE: 8,
}


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Accepted operators by domain: deterministic ones of numbers, without text, sequences, optional values and
#: images.
OPERATORS: Final[Mapping[str, frozenset[str]]] = {
    "": _names(
        """
        Abs Acos Acosh Add AffineGrid And ArgMax ArgMin Asin Asinh Atan Atanh Attention AveragePool
        BatchNormalization BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor BlackmanWindow Cast
        CastLike Ceil Celu CenterCropPad Clip Col2Im Compress Concat Constant ConstantOfShape Conv
        ConvInteger ConvTranspose Cos Cosh CumSum DFT DeformConv DepthToSpace DequantizeLinear Det Div
        DynamicQuantizeLinear Einsum Elu Equal Erf Exp Expand EyeLike Flatten Floor GRU Gather
        GatherElements GatherND Gelu Gemm GlobalAveragePool GlobalLpPool GlobalMaxPool Greater
        GreaterOrEqual GridSample GroupNormalization HammingWindow HannWindow HardSigmoid HardSwish
        Hardmax Identity If InstanceNormalization IsInf IsNaN LRN LSTM LayerNormalization LeakyRelu Less
        LessOrEqual Log LogSoftmax Loop LpNormalization LpPool MatMul MatMulInteger Max MaxPool
        MaxUnpool Mean MeanVarianceNormalization MelWeightMatrix Min Mish Mod Mul Neg NonMaxSuppression
        NonZero Not OneHot Or PRelu Pad Pow QLinearConv QLinearMatMul QuantizeLinear RMSNormalization
        RNN Range Reciprocal ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean
        ReduceMin ReduceProd ReduceSum ReduceSumSquare Relu Reshape Resize ReverseSequence RoiAlign
        RotaryEmbedding Round STFT Scan ScatterElements ScatterND Selu Shape Shrink Sigmoid Sign Sin
        Sinh Size Slice Softmax Softplus Softsign SpaceToDepth Split Sqrt Squeeze Sub Sum Swish Tan Tanh
        TensorScatter ThresholdedRelu Tile TopK Transpose Trilu Unique Unsqueeze Where Xor
        """
    ),
    "ai.onnx.ml": _names(
        """
        ArrayFeatureExtractor Binarizer FeatureVectorizer Imputer LabelEncoder LinearClassifier
        LinearRegressor Normalizer OneHotEncoder SVMClassifier SVMRegressor Scaler TreeEnsemble
        TreeEnsembleClassifier TreeEnsembleRegressor
        """
    ),
}
_ML: Final = "ai.onnx.ml"
#: Prefixes of tree attributes, which are counted by split and leaf instead.
_OF_TREES: Final = ("nodes_", "leaf_", "tree_roots", "target_", "class_")
#: Larger integer attributes count as parameters; smaller ones are options such as an axis.
_OPTION: Final = 255
#: Dimensions of a tensor that do not count as parameters; those of usual models have no more.
_RANK: Final = 8
#: Maximum number of reported details per code.
_NAMED: Final = 5


@dataclass(slots=True)
class Summary:
    """Reasons to reject a model, and its counts."""

    problems: dict[Code, list[str]] = field(default_factory=dict)
    operators: Counter[str] = field(default_factory=Counter)
    #: Stored numbers and their bytes; trees have two numbers per split and one per weight of a leaf.
    numbers: int = 0
    number_bytes: int = 0
    #: Inputs of all nodes: the choice of an input could encode a number.
    inputs: int = 0
    opset: int = 0

    @property
    def parameters(self) -> int:
        """Numbers, or a quarter of their bytes or of the inputs of nodes if that is more.

        A wide number can encode several, and the choice of an input part of one.
        """
        return max(self.numbers, math.ceil(self.number_bytes / 4), math.ceil(self.inputs / 4))

    def add(self, code: Code, detail: str) -> None:
        found = self.problems.setdefault(code, [])
        if detail not in found and len(found) <= _NAMED:
            found.append(detail)

    def count(self, numbers: int, width: int) -> None:
        self.numbers += numbers
        self.number_bytes += numbers * width

    def raise_if_any(self) -> None:
        """Raise ModelRefused with the first code and all problems in the detail."""
        for code, details in self.problems.items():
            others = [f"{other}: {', '.join(more)}" for other, more in self.problems.items() if other != code]
            raise ModelRefused(code, "; ".join([", ".join(details[:_NAMED]), *others]))


def parse(content: bytes) -> onnx.ModelProto:
    """Parse a file. Raises ModelRefused."""
    model = onnx.ModelProto()
    try:
        model.ParseFromString(content)
    except DecodeError as error:
        raise ModelRefused(Code.NOT_ONNX, str(error)) from None
    if not model.HasField("graph") or not model.graph.output:
        raise ModelRefused(Code.NOT_ONNX, "it has no graph with an output")
    model.DiscardUnknownFields()  # onnxruntime may know them: it may be built with a newer ONNX
    return model


def summarize(model: onnx.ModelProto) -> Summary:
    """Check and count all graphs and subgraphs.

    Removes declared shapes, except those of inputs: onnxruntime uses them when it computes constants, so they
    could encode numbers. Their ranks remain, and count beyond the usual.
    """
    found = Summary()
    if model.functions:
        found.add(Code.FUNCTIONS, f"{len(model.functions)} functions")
    if model.training_info:
        found.add(Code.FUNCTIONS, "training information")
    for used in model.opset_import:
        if used.domain in ("", "ai.onnx"):
            found.opset = used.version
        elif used.domain != _ML:
            found.add(Code.DOMAIN, used.domain[:100])
    if not MIN_OPSET <= found.opset <= onnx.defs.onnx_opset_version():
        newest = onnx.defs.onnx_opset_version()
        found.add(Code.OPSET, f"it is {found.opset or 'missing'}; {MIN_OPSET} to {newest} are known")
    graphs, nodes = [model.graph], 0
    while graphs:
        graph = graphs.pop()
        _check_values(graph, found)
        _remove_shapes(graph, found, is_outermost=graph is model.graph)
        nodes += len(graph.node)
        if nodes > MAX_NODES:
            found.add(Code.TOO_MANY_NODES, f"{nodes} or more")
            break
        for node in graph.node:
            graphs += _node(node, found)
    return found


def _check_values(graph: onnx.GraphProto, found: Summary) -> None:
    for value in (*graph.input, *graph.output, *graph.value_info):
        kind = value.type.WhichOneof("value")
        if kind not in (None, "tensor_type") or (
            kind and value.type.tensor_type.elem_type not in (0, *BYTES)
        ):
            found.add(Code.TENSOR_TYPE, value.name[:100])
    for tensor in graph.initializer:
        _count_tensor(tensor, found)
    if graph.sparse_initializer:
        found.add(Code.SPARSE_TENSOR, f"{len(graph.sparse_initializer)} initializers")


def _remove_shapes(graph: onnx.GraphProto, found: Summary, *, is_outermost: bool) -> None:
    stored = {tensor.name for tensor in graph.initializer}
    graph.ClearField("value_info")
    declared = (value for value in graph.input if not is_outermost or value.name in stored)
    for value in (*graph.output, *declared):
        axes = value.type.tensor_type.shape.dim if value.type.HasField("tensor_type") else ()
        _count_dimensions(axes, found)
        for axis in axes:
            if axis.dim_value != 1:  # Loop needs the shape of its counter
                axis.ClearField("dim_value")


def _count_tensor(tensor: TensorProto, found: Summary) -> None:
    """Count the stored values, whatever shape is declared."""
    if tensor.data_location == TensorProto.EXTERNAL or tensor.external_data:
        found.add(Code.EXTERNAL_DATA, tensor.name[:100])
    width = BYTES.get(tensor.data_type)
    if width is None or tensor.string_data:
        found.add(Code.TENSOR_TYPE, tensor.name[:100])
        return
    stored = sum(
        len(values)
        for values in (
            *(tensor.float_data, tensor.int32_data, tensor.int64_data),
            *(tensor.double_data, tensor.uint64_data),
        )
    )
    stored += len(tensor.raw_data) // width
    found.count(stored, width)
    # The operator Shape can read the dimensions: of no values any, of some the rank and their order.
    _count_dimensions(tensor.dims, found, free=_RANK if stored and 0 not in tensor.dims else 1)


def _count_dimensions(dims: Sized, found: Summary, *, free: int = _RANK) -> None:
    found.count(max(len(dims) - free, 0), 8)


def _node(node: onnx.NodeProto, found: Summary) -> Iterator[onnx.GraphProto]:
    """Check and count a node, and yield its subgraphs."""
    domain = "" if node.domain == "ai.onnx" else node.domain
    found.inputs += len(node.input)
    found.operators[node.op_type if not domain else f"{domain}.{node.op_type}"[:200]] += 1
    if domain not in OPERATORS:
        found.add(Code.DOMAIN, domain[:100])
    elif node.op_type not in OPERATORS[domain]:
        found.add(Code.OPERATOR, node.op_type[:100])
    elif node.op_type == "BatchNormalization" and len(node.output) > 1:  # it changes its constants
        found.add(Code.OPERATOR, f"{node.op_type} that is trained")
    trees = _trees(node) if domain == _ML else None
    if trees is not None:
        is_wide = any(attribute.t.data_type == TensorProto.DOUBLE for attribute in node.attribute)
        found.count(trees, 8 if is_wide else 4)
    for attribute in node.attribute:
        is_tree = trees is not None and attribute.name.startswith(_OF_TREES)
        _attribute(node, attribute, found, counted=not is_tree)
        yield from (*([attribute.g] if attribute.HasField("g") else ()), *attribute.graphs)


def _attribute(
    node: onnx.NodeProto, attribute: onnx.AttributeProto, found: Summary, *, counted: bool
) -> None:
    name = f"{node.op_type}.{attribute.name}"[:100]
    tensors = [*([attribute.t] if attribute.HasField("t") else ()), *attribute.tensors]
    held = Summary()
    for tensor in tensors:
        _count_tensor(tensor, held)
    held.count(len(attribute.floats) + attribute.HasField("f"), 4)
    is_number = attribute.name == "value_int" or abs(attribute.i) > _OPTION
    held.count(len(attribute.ints) + is_number, 8)
    if attribute.name == "equation":  # the order of fifty axes encodes as much as seven numbers
        held.number_bytes += len(attribute.s)
    for code in held.problems:
        found.add(code, name)
    if counted:
        found.numbers += held.numbers
        found.number_bytes += held.number_bytes
    if attribute.HasField("sparse_tensor") or attribute.sparse_tensors:
        found.add(Code.SPARSE_TENSOR, name)
    if attribute.ref_attr_name:
        found.add(Code.FUNCTIONS, name)
    has_text = "string" in attribute.name and (attribute.s or attribute.strings)
    if has_text or (node.op_type == "Cast" and attribute.name == "to" and attribute.i not in BYTES):
        found.add(Code.TENSOR_TYPE, name)


def _trees(node: onnx.NodeProto) -> int | None:
    """Count two numbers per split and one per weight of a leaf; None for other operators."""
    lists = {attribute.name: attribute for attribute in node.attribute}
    if node.op_type == "TreeEnsemble":  # has separate lists of leaves
        return 2 * _length(lists.get("nodes_featureids")) + _length(lists.get("leaf_weights"))
    if node.op_type not in ("TreeEnsembleClassifier", "TreeEnsembleRegressor"):
        return None
    modes: Iterable[bytes] = lists["nodes_modes"].strings if "nodes_modes" in lists else ()
    weights = ("class_weights", "target_weights", "class_weights_as_tensor", "target_weights_as_tensor")
    return 2 * sum(mode != b"LEAF" for mode in modes) + sum(_length(lists.get(name)) for name in weights)


def _length(attribute: Any) -> int:
    if attribute is None:
        return 0
    stored = Summary()
    _count_tensor(attribute.t, stored)
    return len(attribute.ints) + len(attribute.floats) + stored.numbers


def compare(
    parsed: onnx.GraphProto, inputs: Iterable[InputSpec], outputs: Iterable[str], found: Summary
) -> None:
    """Compare the inputs and outputs of a graph with those of the manifest."""
    stored = {tensor.name for tensor in parsed.initializer}
    given = {value.name: value for value in parsed.input if value.name not in stored}
    wanted = {spec.name: spec for spec in inputs}
    for name in sorted(given.keys() ^ wanted.keys()):
        where = "the manifest" if name in given else "the graph"
        found.add(Code.INTERFACE, f"input {name[:100]} is not in {where}")
    for name in sorted(given.keys() & wanted.keys()):
        for problem in _differences(given[name].type.tensor_type, wanted[name]):
            found.add(Code.INTERFACE, f"input {name[:100]} {problem}")
    for name in sorted(set(outputs) - {value.name for value in parsed.output}):
        found.add(Code.INTERFACE, f"output {name[:100]} is not in the graph")


def _differences(declared: onnx.TypeProto.Tensor, wanted: InputSpec) -> Iterator[str]:
    dtype = np.dtype(wanted.dtype)
    if declared.elem_type != onnx.helper.np_dtype_to_tensor_dtype(dtype):
        yield f"is not {wanted.dtype}"
    if declared.HasField("shape"):
        shape = [axis.dim_value if axis.HasField("dim_value") else None for axis in declared.shape.dim]
        expected = [None, *wanted.tail]
        if len(shape) != len(expected) or any(
            have is not None and have != want for have, want in zip(shape, expected, strict=True)
        ):
            yield f"has the shape {shape}, not {expected}; None is an axis of any length"
