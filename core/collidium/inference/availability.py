"""Whether this machine can run models: one condition to accept, run and report them."""

from __future__ import annotations

from typing import Final

from collidium.errors import CollidiumError
from collidium.inference.sandbox import CONFINED_BY, confinement, is_installed

NOT_INSTALLED: Final = "onnxruntime is not installed (pip install 'collidium[onnx]')"


def why_not(*, unconfined: bool) -> str:
    """Return why this machine runs no models; empty if it does.

    Starts a process unless ``unconfined`` models are allowed: it takes some 50 ms.
    """
    if not is_installed():
        return NOT_INSTALLED
    if unconfined:
        return ""
    try:
        found = confinement()
    except CollidiumError as error:
        return str(error)
    missing = sorted(set(CONFINED_BY).difference(found))
    return f"models are not kept from: {', '.join(missing)}" if missing else ""
