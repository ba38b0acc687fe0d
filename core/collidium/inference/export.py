"""Estimators of scikit-learn as models. Needs skl2onnx, of the extra ``onnx``."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from collidium.contracts.task import Task
from collidium.errors import ConfigurationError, InvalidInput
from collidium.inference.manifest import Manifest, interface_of

#: The opsets of what is written: onnxruntime 1.20 and later load them.
_OPSETS = {"": 17, "ai.onnx.ml": 3}


def of_estimator(address: str, manifest: Manifest, task: Task) -> bytes:
    """The file of a fitted estimator.

    Parameters
    ----------
    address
        ``MODULE:NAME``; a module of the current directory is found, too.
    manifest
        It has one input: features of the task, float32.

    Raises
    ------
    InvalidInput
        For another manifest, or no such estimator.
    """
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
    estimator = _find(address)
    options = {id(estimator): {"zipmap": False}} if hasattr(estimator, "predict_proba") else None
    model: Any = to_onnx(
        estimator,
        initial_types=cast(Any, [(name, FloatTensorType([None, *feature.shape]))]),
        target_opset=_OPSETS,
        options=options,
    )
    content: bytes = model.SerializeToString(deterministic=True)
    return content


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
