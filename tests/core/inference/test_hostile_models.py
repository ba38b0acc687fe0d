"""A hostile model can end only its own process, and is rejected with a code."""

from __future__ import annotations

import pytest
from msgspec import structs
from tests.core.inference.hostile_models import MODELS, Hostile, endless_loop
from tests.core.inference.toy_models import BATCH, INTERFACE, Interruption

from collidium.inference.messages import Code, ModelRefused
from collidium.inference.sandbox import SandboxLimits, opened

#: For all models except those that run forever.
PATIENT = SandboxLimits(memory_bytes=2**30, load_seconds=100, call_seconds=100)
IMPATIENT = SandboxLimits(memory_bytes=2**30, load_seconds=100, call_seconds=1)


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
    """A cancelled run releases its core at once."""
    interruption = Interruption()
    limits = structs.replace(PATIENT, on_wait=interruption)
    with opened(endless_loop().SerializeToString(), INTERFACE, limits, details=False) as sandbox:
        interruption.armed = True
        with pytest.raises(InterruptedError):
            sandbox.predict([BATCH])
