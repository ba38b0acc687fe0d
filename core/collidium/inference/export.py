"""Exports trained models to ONNX: estimators of scikit-learn, and functions of JAX.

This needs skl2onnx, of the extra ``onnx``, or jax2onnx, of the extra ``jax``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final, cast

import numpy as np

from collidium.contracts.model import ModelInterface
from collidium.contracts.task import Task
from collidium.errors import ConfigurationError, InvalidInput
from collidium.inference.manifest import Input, Manifest, interface_of

#: Opsets of exported models, which onnxruntime 1.20 and later load.
_OPSETS: Final = {"": 17, "ai.onnx.ml": 3}


def exported(address: str, manifest: Manifest, task: Task) -> bytes:
    """Export a fitted estimator, or a function of JAX, as an ONNX file.

    Parameters
    ----------
    address
        ``MODULE:NAME``, also of a module in the current directory. Objects with a method ``predict`` or
        ``transform`` are estimators; functions take the inputs of the manifest in its order.
    manifest
        The manifest; for an estimator its only input is features of the task, float32.

    Raises
    ------
    InvalidInput
        If the manifest does not match, or the name does not exist.
    """
    found = _find(address)
    if hasattr(found, "predict") or hasattr(found, "transform"):
        model = _of_estimator(found, manifest, task)
    elif callable(found):
        model = _of_function(found, manifest, interface_of(task))
    else:
        raise InvalidInput(f"{address} is neither an estimator nor a function")
    content: bytes = model.SerializeToString(deterministic=True)
    return content


def _of_estimator(estimator: Any, manifest: Manifest, task: Task) -> Any:
    features = interface_of(task).features
    given = [(name, features[one.feature]) for name, one in manifest.inputs.items() if one.feature]
    if len(given) != 1 or len(manifest.inputs) != 1:
        raise InvalidInput("an estimator has one input, features of the task")
    try:
        from skl2onnx import to_onnx
        from skl2onnx.common.data_types import FloatTensorType
    except ImportError:
        raise ConfigurationError("export needs skl2onnx: pip install 'collidium[onnx]'") from None
    name, feature = given[0]
    options = {id(estimator): {"zipmap": False}} if hasattr(estimator, "predict_proba") else None
    return to_onnx(
        estimator,
        initial_types=cast(Any, [(name, FloatTensorType([None, *feature.shape]))]),
        target_opset=_OPSETS,
        options=options,
    )


def _of_function(function: Callable[..., Any], manifest: Manifest, interface: ModelInterface) -> Any:
    try:
        import jax  # pyright: ignore[reportMissingImports]  # an extra
        from jax2onnx import to_onnx  # pyright: ignore[reportMissingImports]  # an extra
    except ImportError:
        raise ConfigurationError("export of JAX needs jax2onnx: pip install 'collidium[jax]'") from None
    inputs = []
    for given in manifest.inputs.values():
        # The first axis has a symbolic length, which arrays of the same rows share.
        axis = interface.rows or "events" if given.feature else _axis(given)
        shape: Any = (axis, *given.tail(interface.features))
        struct: Any = jax.ShapeDtypeStruct
        inputs.append(struct(shape, np.dtype(given.dtype)))
    wide = any(given.dtype == "float64" for given in manifest.inputs.values())
    model = to_onnx(function, inputs, opset=_OPSETS[""], enable_double_precision=wide)
    if len(model.graph.output) != len(manifest.wanted):
        raise InvalidInput(
            f"the function returns {len(model.graph.output)} arrays: {manifest.wanted} are wanted"
        )
    _rename(model.graph, dict(zip((one.name for one in model.graph.input), manifest.inputs, strict=True)))
    _rename(model.graph, dict(zip((one.name for one in model.graph.output), manifest.wanted, strict=True)))
    return model


def _axis(given: Input) -> str:
    """The symbolic length of an input's first axis."""
    is_nested = bool(given.column) and given.is_nested
    if given.padded:
        return given.table if is_nested else "events"
    rows = given.source if is_nested else given.table
    return f"{rows}_splits" if given.kind == "row_splits" else rows


def _rename(graph: Any, names: Mapping[str, str]) -> None:
    for value in (*graph.input, *graph.output):
        value.name = names.get(value.name, value.name)
    for node in graph.node:
        for values in (node.input, node.output):
            values[:] = [names.get(name, name) for name in values]


def _find(address: str) -> Any:
    module, colon, name = address.partition(":")
    sys.path.insert(0, str(Path.cwd()))
    try:
        found = getattr(import_module(module), name) if colon else None
    except (ImportError, AttributeError) as error:
        raise InvalidInput(f"{address}: {error}") from error
    finally:
        sys.path.remove(str(Path.cwd()))
    if found is None:
        raise InvalidInput(f"{address} is not MODULE:NAME")
    return found
