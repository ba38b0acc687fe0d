"""A hostile model can end only its own process, and is rejected with a code."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec import structs

pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")

from tests.core.inference.hostile_models import MODELS, Hostile, endless_loop

from collidium.inference.messages import Code, InputSpec, ModelRefused, OutputSpec
from collidium.inference.sandbox import Batch, Interface, Limits, opened

INTERFACE = Interface([InputSpec("x", "float32", (4,))], [OutputSpec("y", 1, is_integer=False)])
BATCH = Batch(3, [np.arange(12, dtype=np.float32).reshape(3, 4)])
#: For all but those that run until they are ended.
PATIENT = Limits(memory_bytes=2**30, load_seconds=100, call_seconds=100)
IMPATIENT = Limits(memory_bytes=2**30, load_seconds=100, call_seconds=1)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_hostile_models_answer_with_their_code(model: Hostile) -> None:
    limits = IMPATIENT if model.codes == (Code.TIME,) else PATIENT
    found = None
    try:
        with opened(model.build(), INTERFACE, limits, details=True) as sandbox:
            (outcome,) = sandbox.predict([BATCH])
            assert outcome.outputs[0].ravel().tolist() == BATCH.arrays[0].sum(axis=1).tolist()
    except ModelRefused as error:
        found = error.code
    assert found in model.codes


def test_on_wait_can_end_a_call() -> None:
    """A run that was cancelled holds no core for minutes."""
    looks: list[bool] = []
    calling = False

    def look() -> None:
        looks.append(calling)
        if looks.count(True) == 5:
            raise InterruptedError

    limits = structs.replace(PATIENT, on_wait=look)
    with opened(endless_loop().SerializeToString(), INTERFACE, limits, details=False) as sandbox:
        calling = True
        with pytest.raises(InterruptedError):
            sandbox.predict([BATCH])
