"""Graphs of small models in the text form of ONNX, and files of example models. Needs onnx, an extra."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt

#: Of all examples: what onnxruntime 1.20 and later load.
_HEADER: Final = '<ir_version: 9, opset_import: ["" : 17]>'

#: Files of a model by name: ``model.onnx`` and ``manifest.toml``.
Files = Mapping[str, bytes]


def graph(text: str, **constants: npt.NDArray[Any] | np.generic) -> bytes:
    """The file of a model.

    Parameters
    ----------
    text : str
        ``name (inputs) => (outputs) { operators }``, see https://github.com/onnx/onnx/blob/main/docs/Syntax.md.
    constants
        Arrays and numbers that the operators name.
    """
    from onnx import numpy_helper, parser

    model = parser.parse_model(f"{_HEADER} {text}")
    for name, values in constants.items():
        model.graph.initializer.append(numpy_helper.from_array(np.asarray(values), name))
    content: bytes = model.SerializeToString(deterministic=True)
    return content


def files(model: bytes, manifest: str) -> Files:
    """The files of a model with its manifest."""
    return {"model.onnx": model, "manifest.toml": f"contract = 1\n{manifest}".encode()}


def of_estimator(estimator: Any, features: int, **options: Any) -> bytes:
    """The file of a scikit-learn estimator of float32 features, input ``x``. Needs skl2onnx."""
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import FloatTensorType

    # To type checkers it returns a tuple, as it does with another option.
    made: Any = to_onnx(
        estimator,
        initial_types=cast(Any, [("x", FloatTensorType([None, features]))]),
        target_opset={"": 17, "ai.onnx.ml": 3},
        options={id(estimator): options},
    )
    content: bytes = made.SerializeToString(deterministic=True)
    return content


def dense(stack: str, given: str, depth: int) -> str:
    """Lines of a stack of dense layers, as that of ``networks``; its output has the stack's name."""
    lines, name = [], given
    for layer in range(depth):
        made = stack if layer == depth - 1 else f"{stack}_{layer}"
        lines.append(f"{made}_product = MatMul({name}, {stack}_{layer}_weight)")
        if layer == depth - 1:
            lines.append(f"{made} = Add({made}_product, {stack}_{layer}_bias)")
        else:
            lines += [f"{made}_sum = Add({made}_product, {stack}_{layer}_bias)", f"{made} = Relu({made}_sum)"]
        name = made
    return "\n".join(lines)
