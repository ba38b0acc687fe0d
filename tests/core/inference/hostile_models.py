"""Hostile models and the codes with which each may be rejected. Tests build them on demand.

Valid ones have the input ``x``, float32 of shape (rows, 4), and the output ``y``, its sum, shape (rows, 1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, parser

from collidium.inference.messages import Code

FLOAT: Final = TensorProto.FLOAT
INT64: Final = TensorProto.INT64
INT32: Final = TensorProto.INT32
BOOL: Final = TensorProto.BOOL
INT_MIN: Final = -(2**31)


@dataclass(frozen=True)
class Hostile:
    """A model, and the possible codes; None if it may run."""

    name: str
    build: Callable[[], bytes]
    codes: tuple[Code | None, ...]


MODELS: list[Hostile] = []


def add(name: str, build: Callable[[], Any], *codes: Code | None) -> None:
    def file() -> bytes:
        made = build()
        return made if isinstance(made, bytes) else made.SerializeToString()

    MODELS.append(Hostile(name, file, codes))


def hostile(*codes: Code | None) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Add the model that the function builds."""

    def decorate(build: Callable[[], Any]) -> Callable[[], Any]:
        add(build.__name__, build, *codes)
        return build

    return decorate


def altered(*codes: Code | None) -> Callable[[Callable[[Any], object]], Callable[[Any], object]]:
    """Add a valid model that the function alters. Its last node is ``y = Identity(y0)``."""

    def decorate(alter: Callable[[Any], object]) -> Callable[[Any], object]:
        def build() -> onnx.ModelProto:
            model = text(f"{SUM} y = Identity(y0)")
            alter(model)
            return model

        add(alter.__name__, build, *codes)
        return alter

    return decorate


def text(body: str, *, more: str = "", opset: int = 17, **constants: Any) -> onnx.ModelProto:
    """A model of ``y`` and ``x`` from ONNX text."""
    head = f'<ir_version: 9, opset_import: ["" : {opset}{more}]>'
    model = parser.parse_model(f"{head} hostile (float[N, 4] x) => (float[N, 1] y) {{ {body} }}")
    for name, values in constants.items():
        model.graph.initializer.append(numpy_helper.from_array(np.asarray(values), name))
    return model


#: The sum of the inputs, to which models add what harms.
SUM: Final = "axes = Constant <value = int64[1] {1}> () y0 = ReduceSum <keepdims = 1> (x, axes)"
LAST: Final = "y = Add(y0, zero)"


USED: Final = "small = ReduceMax <keepdims = 0> (made) nothing = Mul(small, none) y = Add(y0, nothing)"


def adding(body: str, **constants: Any) -> onnx.ModelProto:
    """A model whose ``y`` is a sum to which something is added: ``made``, any float tensor, times 0."""
    return text(
        f"{SUM} {body} {USED}",
        none=np.float32(0),
        **constants,
    )


# -- invalid files ----------------------------------------------------------------------------------------


@hostile(Code.NOT_ONNX)
def empty() -> bytes:
    return b""


@hostile(Code.NOT_ONNX)
def garbage() -> bytes:
    return bytes(range(256)) * 40


@hostile(Code.NOT_ONNX)
def truncated() -> bytes:
    return text(f"{SUM} y = Identity(y0)").SerializeToString()[:-20]


@hostile(Code.TOO_LARGE)
def too_large() -> bytes:
    return bytes(100_000_001)


@hostile(Code.NOT_ONNX)
def nested_beyond_the_parser() -> bytes:
    """Fields within fields: protobuf has a limit of 100, so that parsing does not run out of stack."""
    data = b""
    for _ in range(2000):  # graph -> node -> attribute -> graph
        for field in (6, 5, 1):
            data = bytes([field << 3 | 2]) + _varint(len(data)) + data
    return b"\x08\x09" + bytes([7 << 3 | 2]) + _varint(len(data)) + data


def _varint(number: int) -> bytes:
    made = bytearray()
    while number > 127:
        made.append(number & 127 | 128)
        number >>= 7
    return bytes([*made, number])


# -- data in other files ----------------------------------------------------------------------------------


def external(tensor: TensorProto, location: str) -> TensorProto:
    tensor.ClearField("raw_data")
    tensor.ClearField("float_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    tensor.external_data.add(key="length", value="4")
    return tensor


def _external_initializer(location: str) -> onnx.ModelProto:
    model = text(f"{SUM} {LAST}", zero=np.float32(0))
    external(model.graph.initializer[0], location)
    return model


for _name, _location in {
    "external_parent": "../../../../etc/passwd",
    "external_absolute": "/etc/passwd",
    "external_proc": "/proc/self/environ",
    "external_memory": "/proc/self/mem",
    "external_device": "/dev/zero",
    "external_link": "link",
    "external_hard_link": "hard_link",
    "external_linked_directory": "linked/secret",
    "external_long": "a" * 100_000,
}.items():
    add(_name, partial(_external_initializer, _location), Code.EXTERNAL_DATA)


@hostile(Code.EXTERNAL_DATA)
def external_constant() -> onnx.ModelProto:
    model = text(f"{SUM} {LAST}", unused=np.float32(0))
    held = external(numpy_helper.from_array(np.float32([0]), "held"), "/etc/passwd")
    model.graph.node.insert(0, helper.make_node("Constant", [], ["zero"], value=held))
    return model


@hostile(Code.EXTERNAL_DATA)
def external_subgraph() -> onnx.ModelProto:
    model = branching(1)
    held = external(numpy_helper.from_array(np.float32([0]), "held"), "/etc/passwd")
    model.graph.node[-1].attribute[0].g.initializer.append(held)
    return model


@hostile(Code.SPARSE_TENSOR)
def external_sparse() -> onnx.ModelProto:
    model = sparse_out_of_range()
    external(model.graph.sparse_initializer[0].values, "/etc/passwd")
    return model


@hostile(Code.SPARSE_TENSOR)
def sparse_out_of_range() -> onnx.ModelProto:
    model = text(f"{SUM} {LAST}")
    values = numpy_helper.from_array(np.float32([1]), "zero")
    places = numpy_helper.from_array(np.int64([2**40]), "places")
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, places, [4]))
    return model


@hostile(Code.SPARSE_TENSOR)
def sparse_attribute() -> onnx.ModelProto:
    model = text(f"{SUM} {LAST}")
    values, places = numpy_helper.from_array(np.float32([1])), numpy_helper.from_array(np.int64([0]))
    held = helper.make_sparse_tensor(values, places, [4])
    model.graph.node.insert(0, helper.make_node("Constant", [], ["zero"], sparse_value=held))
    return model


# -- false declarations-----------------------------------------------------------------------------------


def _lying(dims: list[int]) -> onnx.ModelProto:
    model = text(f"{SUM} {LAST}", zero=np.float32([0]))
    del model.graph.initializer[0].dims[:]
    model.graph.initializer[0].dims.extend(dims)
    return model


add("declares_too_much", partial(_lying, [10**6, 10**6]), Code.LOAD_FAILED, Code.MEMORY)
add("declares_beyond_64_bits", partial(_lying, [2**40, 2**40]), Code.LOAD_FAILED, Code.MEMORY)
add("declares_a_negative_size", partial(_lying, [-4]), Code.LOAD_FAILED)


@hostile(Code.LOAD_FAILED)
def has_no_data() -> onnx.ModelProto:
    model = text(f"{SUM} {LAST}", zero=np.float32([0]))
    model.graph.initializer[0].ClearField("raw_data")
    return model


@altered(Code.TENSOR_TYPE)
def text_in_a_tensor(model: onnx.ModelProto) -> None:
    model.graph.initializer.append(helper.make_tensor("words", TensorProto.STRING, [1], [b"x" * 1000]))


@hostile(Code.TENSOR_TYPE)
def text_output() -> onnx.ModelProto:
    model = text(f"{SUM} y = Identity(y0) words = Cast <to = 8> (y0)")
    model.graph.output.append(helper.make_tensor_value_info("words", TensorProto.STRING, None))
    return model


@hostile(Code.OPERATOR, Code.TENSOR_TYPE)
def doubling_text() -> onnx.ModelProto:
    return text(
        "s0 = Cast <to = 8> (x) "
        + " ".join(f"s{number + 1} = StringConcat(s{number}, s{number})" for number in range(40))
        + " y = Cast <to = 1> (s40)",
        opset=20,
    )


@altered(Code.TENSOR_TYPE)
def complex_numbers(model: onnx.ModelProto) -> None:
    model.graph.initializer.append(numpy_helper.from_array(np.complex64([1j]), "unreal"))


@altered(Code.TENSOR_TYPE)
def sequence_input(model: onnx.ModelProto) -> None:
    model.graph.input.append(helper.make_tensor_sequence_value_info("many", FLOAT, None))


# -- operators --------------------------------------------------------------------------------------------


@hostile(Code.DOMAIN)
def unknown_domain() -> onnx.ModelProto:
    model = text(f"{SUM} y = Identity(y0)", more=', "com.example" : 1')
    model.graph.node[-1].domain = "com.example"
    return model


@altered(Code.DOMAIN)
def microsoft_domain(model: onnx.ModelProto) -> None:
    """Its operators need no import, and some read files or call other libraries."""
    model.graph.node[-1].domain = "com.microsoft"


@altered(Code.OPSET)
def opset_of_the_future(model: onnx.ModelProto) -> None:
    model.opset_import[0].version = 999


@altered(Code.OPSET)
def opset_of_the_past(model: onnx.ModelProto) -> None:
    model.opset_import[0].version = 7


@altered(Code.OPSET)
def no_opset(model: onnx.ModelProto) -> None:
    del model.opset_import[:]


for _name, _body in {
    "random_normal": "zero = RandomNormal <shape = [1]> ()",
    "random_uniform": "zero = RandomUniform <shape = [1]> ()",
    "random_normal_like": "zero = RandomNormalLike (y0)",
    "random_uniform_like": "zero = RandomUniformLike (y0)",
    "bernoulli": "chance = Sigmoid(y0) zero = Bernoulli (chance)",
    "multinomial": "drawn = Multinomial <sample_size = 1> (x) zero = Cast <to = 1> (drawn)",
    "dropout": "half = Constant <value_float = 0.5> () yes = Constant <value = bool {1}> () "
    "zero = Dropout (y0, half, yes)",
    "sequences": "many = SequenceConstruct(y0) zero = ConcatFromSequence <axis = 0> (many)",
    "unknown_operator": "zero = DoesNotExist(y0)",
}.items():
    add(_name, partial(text, f"{SUM} {_body} {LAST}"), Code.OPERATOR)

for _name, _body, _code in (
    ("cast_to_text", "words = Cast <to = 8> (y0) y = Cast <to = 1> (words)", Code.TENSOR_TYPE),
    ("cycle", "a = Add(y0, b) b = Neg(a) y = Identity(a)", Code.LOAD_FAILED),
    ("same_name_twice", "y = Identity(y0) y = Neg(y0)", Code.LOAD_FAILED),
    ("unknown_value", "y = Add(y0, nowhere)", Code.LOAD_FAILED),
    ("another_shape", "y = Identity(x)", Code.OUTPUT_SHAPE),
    # The number of rows depends on values of the inputs, which an error could show.
    (
        "a_shape_of_the_values",
        "none = Sub(y0, y0) places = NonZero(none) made = Cast <to = 1> (places) y = Transpose(made)",
        Code.OUTPUT_SHAPE,
    ),
):
    add(_name, partial(text, f"{SUM} {_body}"), _code)


def _training(opset: int, more: str, option: str) -> onnx.ModelProto:
    return text(
        f"n, mean, v{more} = BatchNormalization {option}(x, one, one, one, one) "
        f"{SUM} m = ReduceMax <keepdims = 0> (mean) y = Add(y0, m)",
        opset=opset,
        one=np.ones(4, np.float32),
    )


add("changing_constants_13", partial(_training, 13, ", a, b", ""), Code.OPERATOR)
add("changing_constants_17", partial(_training, 17, "", "<training_mode = 1> "), Code.OPERATOR)


@hostile(Code.FUNCTIONS)
def nested_functions() -> onnx.ModelProto:
    """4 to the power of 13 calls, which a check and a session both unfold."""
    model = text(f"{SUM} y = Identity(y0)", more=', "own" : 1')
    opset = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    for level in range(13):
        inner = f"F{level + 1}" if level < 12 else "Identity"
        nodes = [
            helper.make_node(inner, ["a" if call == 0 else f"b{call - 1}"], [f"b{call}"]) for call in range(4)
        ]
        for node in nodes:
            node.domain = "own" if level < 12 else ""
        model.functions.append(helper.make_function("own", f"F{level}", ["a"], ["b3"], nodes, opset))
    model.graph.node[-1].op_type, model.graph.node[-1].domain = "F0", "own"
    return model


@hostile(Code.FUNCTIONS)
def recursive_function() -> onnx.ModelProto:
    model = text(f"{SUM} y = Identity(y0)", more=', "own" : 1')
    node = helper.make_node("F", ["a"], ["b"], domain="own")
    opset = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    model.functions.append(helper.make_function("own", "F", ["a"], ["b"], [node], opset))
    model.graph.node[-1].op_type, model.graph.node[-1].domain = "F", "own"
    return model


@altered(Code.FUNCTIONS)
def training_information(model: onnx.ModelProto) -> None:
    model.training_info.add()


# -- graphs -----------------------------------------------------------------------------------------------


@altered(Code.TOO_MANY_NODES)
def long_chain(model: onnx.ModelProto) -> None:
    del model.graph.node[-1]
    for number in range(200_000):
        model.graph.node.add(op_type="Neg", input=[f"y{number}"], output=[f"y{number + 1}"])
    model.graph.node.add(op_type="Identity", input=["y200000"], output=["y"])


@hostile(Code.TOO_MANY_NODES)
def long_chain_in_a_branch() -> onnx.ModelProto:
    model = branching(1)
    branch = model.graph.node[-1].attribute[0].g
    for number in range(20_001):
        branch.node.add(op_type="Neg", input=["y0"], output=[f"n{number}"])
    return model


def branching(levels: int) -> onnx.ModelProto:
    """Ifs within Ifs."""
    inner = [helper.make_node("Identity", ["y0"], ["z0"])]
    for level in range(levels):
        branches = {
            f"{which}_branch": helper.make_graph(
                inner, which, [], [helper.make_tensor_value_info(f"z{level}", FLOAT, None)]
            )
            for which in ("then", "else")
        }
        if level < levels - 1:  # the other one is short, as all would be 2 to the power of the levels
            short = [helper.make_node("Identity", ["y0"], [f"z{level}"])]
            branches["else_branch"] = helper.make_graph(
                short, "short", [], [helper.make_tensor_value_info(f"z{level}", FLOAT, None)]
            )
        inner = [helper.make_node("If", ["yes"], [f"z{level + 1}"], **branches)]
    model = text(f"{SUM} y = Identity(y0)", yes=np.array(True))
    del model.graph.node[-1]
    inner[0].output[0] = "y"
    model.graph.node.extend(inner)
    return model


@hostile(None, Code.NOT_ONNX)
def nested_branches() -> onnx.ModelProto:
    return branching(30)


@altered(Code.NOT_ONNX)
def no_output(model: onnx.ModelProto) -> None:
    del model.graph.output[:]


# -- values -----------------------------------------------------------------------------------------------


def _dividing(operator: str, first: int, second: int, *, folded: bool) -> onnx.ModelProto:
    """An integer division; folded: of constants, when the model is loaded."""
    zero = "zero32 = Identity(nil)" if folded else "whole = Cast <to = 6> (y0) zero32 = Sub(whole, whole)"
    return text(
        f"{SUM} {zero} by = Add(second, zero32) of = Add(first, zero32) part = {operator}(of, by) "
        "made = Cast <to = 1> (part) nothing = Mul(made, none) y = Add(y0, nothing)",
        first=np.int32([first]),
        second=np.int32([second]),
        nil=np.int32([0]),
        none=np.float32(0),
    )


for _name, _arguments, _folded, _codes in (
    ("smallest_by_minus_one", ("Div", INT_MIN, -1), False, (Code.CRASHED,)),
    ("smallest_modulo_minus_one", ("Mod", INT_MIN, -1), False, (Code.CRASHED, None)),
    ("smallest_by_minus_one_at_load", ("Div", INT_MIN, -1), True, (Code.CRASHED,)),
    ("by_zero", ("Div", 1, 0), False, (Code.RUN_FAILED, Code.CRASHED)),
    ("modulo_zero", ("Mod", 1, 0), False, (Code.RUN_FAILED, Code.CRASHED)),
):
    add(_name, partial(_dividing, *_arguments, folded=_folded), *_codes)


@hostile(Code.RUN_FAILED)
def gathers_beyond() -> onnx.ModelProto:
    return text(f"{SUM} zero = Gather(y0, beyond) {LAST}", beyond=np.int64([2**40]))


def _giant(body: str) -> onnx.ModelProto:
    constants = {
        "big": np.int64([10**6, 10**6]),
        "far": np.float32(1e11),
        "one": np.float32(1e-3),
        "row": np.float32([1]),
        "pads": np.int64([0, 2**38]),
        "repeats": np.int64([2**38]),
        "places": np.int64([0]),
        "depth": np.int64(2**38),
        "values": np.float32([0, 1]),
    }
    return adding(body, **{name: value for name, value in constants.items() if name in body})


for _name, _body in {
    "giant_constant": "made = ConstantOfShape(big)",
    "giant_expand": "made = Expand(none, big)",
    "giant_range": "made = Range(none, far, one)",
    "giant_pad": "made = Pad(row, pads)",
    "giant_tile": "made = Tile(row, repeats)",
    "giant_one_hot": "made = OneHot(places, depth, values)",
}.items():
    add(_name, partial(_giant, _body), Code.MEMORY, Code.RUN_FAILED, Code.LOAD_FAILED)


def loop(body_nodes: list[onnx.NodeProto], carried: str, *, turns: int) -> onnx.ModelProto:
    """A loop that carries a value of any shape from ``v_in`` to ``v_out``."""
    body = helper.make_graph(
        [*body_nodes, helper.make_node("Identity", ["going_in"], ["going"])],
        "body",
        [
            helper.make_tensor_value_info("turn", INT64, []),
            helper.make_tensor_value_info("going_in", BOOL, []),
            helper.make_tensor_value_info("v_in", FLOAT, None),
        ],
        [
            helper.make_tensor_value_info("going", BOOL, []),
            helper.make_tensor_value_info("v_out", FLOAT, None),
        ],
    )
    model = adding("made = Identity(y0)", turns=np.int64(turns), yes=np.array(True))
    node = helper.make_node("Loop", ["turns", "yes", carried], ["looped"], body=body)
    place = next(number for number, node in enumerate(model.graph.node) if node.output[0] == "made")
    model.graph.node.insert(place, node)
    model.graph.node[place + 1].input[0] = "looped"
    return model


@hostile(Code.TIME)
def endless_loop() -> onnx.ModelProto:
    return loop([helper.make_node("Neg", ["v_in"], ["v_out"])], "y0", turns=2**62)


@hostile(Code.MEMORY, Code.RUN_FAILED)
def doubling_loop() -> onnx.ModelProto:
    return loop([helper.make_node("Concat", ["v_in", "v_in"], ["v_out"], axis=0)], "y0", turns=60)


@hostile(Code.TIME)
def giant_product() -> onnx.ModelProto:
    """Work that no callback interrupts."""
    size = np.int64([8000, 8000])
    return text(
        f"{SUM} low = ReduceMin <keepdims = 0> (x) square = Expand(low, size) "
        f"made = MatMul(square, square) {USED}",
        size=size,
        none=np.float32(0),
    )


# -- trees ------------------------------------------------------------------------------------------------


def tree(true: list[int], false: list[int]) -> onnx.ModelProto:
    count = len(true)
    is_leaf = [next_node == 0 for next_node in true]
    leaves = [number for number in range(count) if is_leaf[number]]
    node = helper.make_node(
        "TreeEnsembleRegressor",
        ["x"],
        ["y"],
        domain="ai.onnx.ml",
        n_targets=1,
        nodes_treeids=[0] * count,
        nodes_nodeids=list(range(count)),
        nodes_featureids=[0] * count,
        nodes_modes=["LEAF" if leaf else "BRANCH_LEQ" for leaf in is_leaf],
        nodes_values=[0.0] * count,
        nodes_truenodeids=true,
        nodes_falsenodeids=false,
        nodes_missing_value_tracks_true=[0] * count,
        target_treeids=[0] * len(leaves),
        target_nodeids=leaves,
        target_ids=[0] * len(leaves),
        target_weights=[1.0] * len(leaves),
    )
    model = text(f"{SUM} y = Identity(y0)", more=', "ai.onnx.ml" : 3')
    del model.graph.node[:]
    model.graph.node.append(node)
    return model


@hostile(Code.LOAD_FAILED, Code.RUN_FAILED, Code.TIME, Code.CRASHED)
def tree_with_a_cycle() -> onnx.ModelProto:
    return tree([1, 2, 1, 0], [3, 3, 3, 0])


@hostile(Code.LOAD_FAILED, Code.RUN_FAILED, Code.CRASHED)
def tree_with_a_bad_child() -> onnx.ModelProto:
    return tree([1, 0, 0], [10**9, 0, 0])


@hostile(Code.LOAD_FAILED, Code.CRASHED)
def deeptree() -> onnx.ModelProto:
    levels = 300_000
    true = [number for level in range(levels) for number in (2 * level + 1, 0)]
    false = [number for level in range(levels) for number in (2 * level + 2, 0)]
    return tree([*true, 0], [*false, 0])


# -- against the manifest ---------------------------------------------------------------------------------


@altered(Code.INTERFACE)
def other_input(model: onnx.ModelProto) -> None:
    model.graph.input[0].name = model.graph.node[1].input[0] = "event_id"


for _name, _graph in {
    "other_output": "other (float[N, 4] x) => (float[N, 4] z) { z = Neg(x) }",
    "other_type": "other (double[N, 4] x) => (double[N, 4] y) { y = Neg(x) }",
}.items():
    _head = '<ir_version: 9, opset_import: ["" : 17]> '
    add(_name, partial(parser.parse_model, _head + _graph), Code.INTERFACE)


@altered(Code.INTERFACE)
def fixed_batch(model: onnx.ModelProto) -> None:
    rows = onnx.TensorShapeProto.Dimension(dim_value=3)
    model.graph.input[0].type.tensor_type.shape.dim[0].CopyFrom(rows)


@hostile(Code.OUTPUT_TYPE)
def integers() -> onnx.ModelProto:
    model = text(f"{SUM} y = Cast <to = 7> (y0)")
    model.graph.output[0].type.tensor_type.elem_type = INT64
    return model
