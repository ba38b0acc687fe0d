"""Small neural networks: training with JAX, files of weights, inference with NumPy, and export to ONNX.

Export needs the package onnx.

They are trained in JAX and applied by NumPy with one forward pass, so that a server needs no extra.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt

#: Weights and other numbers of a model, by name.
Arrays = dict[str, npt.NDArray[Any]]

#: Header of ONNX models that onnxruntime 1.20 and later load.
_HEADER: Final = '<ir_version: 9, opset_import: ["" : 17]>'

#: Files of a model by name: ``model.onnx`` and ``manifest.toml``.
Files = Mapping[str, bytes]


def saved(arrays: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """Return the file of a model; deterministic."""
    file = io.BytesIO()
    np.savez_compressed(file, **dict(sorted(arrays.items())))  # type: ignore[arg-type]  # names are keywords there
    return file.getvalue()


def loaded(content: bytes) -> Arrays:
    """Return the arrays of a file of :func:`saved`, in double precision."""
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        return {name: file[name].astype(np.float64) for name in file.files}


def initial(chance: np.random.Generator, **sizes: tuple[int, ...]) -> Arrays:
    """Return random weights of stacks of dense layers with these widths (K. He et al., arXiv:1502.01852).

    Names are ``STACK.LAYER.weight``, shape (width before, width after), and ``STACK.LAYER.bias``.
    """
    arrays: Arrays = {}
    for name, widths in sizes.items():
        for layer, (before, after) in enumerate(pairwise(widths)):
            scale = np.sqrt(2 / before)
            arrays[f"{name}.{layer}.weight"] = chance.normal(0, scale, (before, after)).astype(np.float32)
            arrays[f"{name}.{layer}.bias"] = np.zeros(after, np.float32)
    return arrays


def dense(arrays: Mapping[str, Any], name: str, x: Any) -> Any:
    """Apply a stack of dense layers with ReLU between them to the last axis of a NumPy or JAX array."""
    depth = sum(key.startswith(f"{name}.") for key in arrays) // 2
    for layer in range(depth):
        x = x @ arrays[f"{name}.{layer}.weight"] + arrays[f"{name}.{layer}.bias"]
        x = x * (x > 0) if layer < depth - 1 else x
    return x


@dataclass(frozen=True, slots=True)
class Schedule:
    """Training with AdamW (I. Loshchilov, F. Hutter, arXiv:1711.05101) and cosine decay of the learning rate.

    ``decay`` is the weight decay.
    """

    epochs: int
    batch: int
    rate: float = 3e-3
    decay: float = 1e-3
    seed: int = 7


def fitted(
    weights: Arrays, loss: Callable[..., Any], data: Mapping[str, npt.NDArray[Any]], schedule: Schedule
) -> Arrays:
    """Minimise ``loss(weights, **batch)`` over batches of the rows of ``data``; deterministic.

    All arrays of ``data`` have the same number of rows. Incomplete batches at the end of an epoch are
    dropped. Needs jax and optax.
    """
    import jax  # pyright: ignore[reportMissingImports]  # an extra
    import optax  # pyright: ignore[reportMissingImports]  # an extra

    rows = len(next(iter(data.values())))
    batch = min(schedule.batch, rows)
    steps = rows // batch
    rate = optax.cosine_decay_schedule(schedule.rate, schedule.epochs * steps)
    optimizer = optax.adamw(rate, weight_decay=schedule.decay)
    arrays = {name: jax.numpy.asarray(values) for name, values in data.items()}

    def step(carry: Any, rows: Any) -> Any:
        weights, state = carry
        gradient = jax.grad(loss)(weights, **{name: values[rows] for name, values in arrays.items()})
        updates, state = optimizer.update(gradient, state, weights)
        return (optax.apply_updates(weights, updates), state), None

    epoch = jax.jit(lambda carry, order: jax.lax.scan(step, carry, order)[0])
    chance = np.random.default_rng(schedule.seed)
    carry = (weights, optimizer.init(weights))
    for _ in range(schedule.epochs):
        carry = epoch(carry, chance.permutation(rows)[: steps * batch].reshape(steps, batch))
    return {name: np.asarray(values) for name, values in carry[0].items()}


def graph(text: str, **constants: npt.NDArray[Any] | np.generic) -> bytes:
    """Return the ONNX file of a model.

    Parameters
    ----------
    text : str
        ``name (inputs) => (outputs) { operators }``, see https://github.com/onnx/onnx/blob/main/docs/Syntax.md.
    constants
        Initializers by name.
    """
    from onnx import numpy_helper, parser

    model = parser.parse_model(f"{_HEADER} {text}")
    for name, values in constants.items():
        model.graph.initializer.append(numpy_helper.from_array(np.asarray(values), name))
    content: bytes = model.SerializeToString(deterministic=True)
    return content


def files(model: bytes, manifest: str) -> Files:
    """Return the files of a model and its manifest."""
    return {"model.onnx": model, "manifest.toml": f"contract = 1\n{manifest}".encode()}


def of_estimator(estimator: Any, features: int, **options: Any) -> bytes:
    """Return the ONNX file of a scikit-learn estimator, whose input ``x`` is float32. Needs skl2onnx."""
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import FloatTensorType

    # Annotated as a tuple, which it returns only with another option.
    made: Any = to_onnx(
        estimator,
        initial_types=cast(Any, [("x", FloatTensorType([None, features]))]),
        target_opset={"": 17, "ai.onnx.ml": 3},
        options={id(estimator): options},
    )
    content: bytes = made.SerializeToString(deterministic=True)
    return content


def dense_graph(stack: str, given: str, depth: int) -> str:
    """Return the ONNX operators of a stack of dense layers, as :func:`dense`; the output has its name."""
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
