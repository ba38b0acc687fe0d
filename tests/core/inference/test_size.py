"""Numbers that a model hides outside of tensors are counted."""

from __future__ import annotations

import string
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper
from tests.core.inference.hostile_models import SUM, text, tree
from tests.core.inference.toy_models import BATCH, INTERFACE

from collidium.inference import graph
from collidium.inference.running import count
from collidium.inference.sandbox import SandboxLimits, opened


def hiding(operators: str) -> ModelProto:
    """A model whose ``v`` is to hold numbers that are not stored as such."""
    return text(f"{SUM} {operators} f = Cast <to = 1> (v) s = ReduceSum <keepdims = 0> (f) y = Add(y0, s)")


def in_a_shape() -> ModelProto:
    made = hiding("v = Shape(empty)")
    made.graph.initializer.append(TensorProto(name="empty", data_type=1, dims=[0, *range(2, 1002)]))
    return made


def in_a_shape_of_bits(**values: Any) -> ModelProto:
    made = hiding("v = Shape(empty)")
    made.graph.initializer.append(TensorProto(name="empty", data_type=1, dims=[0, 1] * 1000, **values))
    return made


def in_a_rank(dims: list[int]) -> ModelProto:
    """A tensor of few values, whose rank and order of dimensions are numbers."""
    made = hiding("v = Shape(few)")
    values = [1.0] * int(np.prod(dims))
    made.graph.initializer.append(TensorProto(name="few", data_type=1, dims=dims, float_data=values))
    return made


def in_the_rank_of_an_attribute() -> ModelProto:
    made = hiding("v = Shape(few)")
    few = TensorProto(data_type=1, dims=[1] * 1000, float_data=[1.0])
    made.graph.node.insert(0, helper.make_node("Constant", [], ["few"], value=few))
    return made


def in_the_rank_of_an_output() -> ModelProto:
    made = hiding("v = Shape(y0)")
    made.graph.output.append(helper.make_tensor_value_info("f", 1, [None] * 1000))
    return made


def in_an_equation() -> ModelProto:
    """Axes of an empty tensor, in an order that only the text has."""
    letters = string.ascii_letters
    made = hiding(
        "sizes = Range(one, many, one) shape = Concat <axis = 0> (none, sizes) "
        "empty = ConstantOfShape(shape) "
        f'turned = Einsum <equation = "{letters}->{letters[::-1]}"> (empty) v = Shape(turned)'
    )
    stored = {"one": np.array(1), "many": np.array(len(letters)), "none": np.array([0])}
    made.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in stored.items())
    return made


def in_inputs() -> ModelProto:
    made = hiding("zero = Sub(y0, y0) one = Cos(zero) v = Identity(zero)")
    node = next(node for node in made.graph.node if node.output[0] == "v")
    node.CopyFrom(helper.make_node("Concat", ["one", "zero", "one", "one"] * 1000, ["v"], axis=0))
    return made


def in_trees(**more: Any) -> ModelProto:
    made = tree([1, 0, 0], [2, 0, 0])
    made.graph.node[0].attribute.extend(helper.make_attribute(name, value) for name, value in more.items())
    return made


@pytest.mark.parametrize(
    ("hidden", "least"),
    [
        (in_a_shape, 1000),
        (in_a_shape_of_bits, 1000),
        (lambda: in_a_shape_of_bits(float_data=[1.0]), 1000),
        (lambda: in_a_rank([1] * 1_000_000), 1_000_000),
        (lambda: in_a_rank([1, 1, 2, 1] * 2 + [1] * 1000), 1000),
        (in_the_rank_of_an_attribute, 900),
        (in_the_rank_of_an_output, 900),
        (in_an_equation, 26),
        (in_inputs, 1000),
        (lambda: in_trees(base_values=[1.0] * 1000), 1000),
        (lambda: in_trees(classlabels_int64s=list(range(1000))), 1000),
        (lambda: in_trees(weights_as_tensor=numpy_helper.from_array(np.zeros(1000))), 1000),
        (lambda: hiding("c = Cast <to = 7> (y0) v = EyeLike <k = 123456789> (c)"), 4),
    ],
)
def test_hidden_numbers_are_counted(hidden: Callable[[], ModelProto], least: int) -> None:
    assert count(hidden().SerializeToString()).n_params >= least


def test_usual_ranks_do_not_count() -> None:
    """A bias of a convolution has four dimensions; what a model is must not change its size."""
    flat, deep = in_a_rank([6]), in_a_rank([1, 1, 1, 6, 1, 1, 1, 1])
    assert count(flat.SerializeToString()).n_params == count(deep.SerializeToString()).n_params


@pytest.mark.parametrize("where", ["value_info", "output"])
def test_declared_shapes_hold_no_numbers(where: str) -> None:
    """onnxruntime takes them for true where it computes constants; those here are not."""
    made = hiding(
        "n = Shape(x) z = Mul(n, zeros) m = ReduceSum <keepdims = 0> (z) k = Add(threes, m) "
        "e = Expand(x1, k) v = Shape(e)"
    )
    stored = {"zeros": np.int64([0]), "threes": np.int64([1, 1, 1]), "x1": np.float32(1)}
    made.graph.initializer.extend(numpy_helper.from_array(np.asarray(v), name) for name, v in stored.items())
    getattr(made.graph, where).append(helper.make_tensor_value_info("e", 1, [1234, 777, 999]))
    with opened(made.SerializeToString(), INTERFACE, SandboxLimits(), details=True) as sandbox:
        (outcome,) = sandbox.predict([BATCH])
    assert outcome.outputs[0].ravel().tolist() == (BATCH.arrays[0].sum(axis=1) + 3).tolist()


def test_fields_that_only_onnxruntime_may_know_are_removed() -> None:
    made = text("y = ReduceSum <keepdims = 1> (x, axes)", axes=np.array([1])).SerializeToString()
    unknown = b"\xc2\x3e\x03new"  # a field of the number 1000
    in_graph = b"\x3a\x06" + unknown
    assert graph.parse(made + unknown + in_graph).SerializeToString() == made
