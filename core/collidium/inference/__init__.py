"""Submitted models: checked, run and timed in a sandbox, on this machine.

::

    manifest = inference.read_manifest(Path("manifest.toml").read_bytes(), task)
    model = inference.Model(Path("model.onnx").read_bytes(), manifest)
    facts = inference.check(model, task, limits=limits)               # parameters, bytes, operators
    for table in inference.predict(model, task, blocks, limits=limits): ...   # predictions, block by block
    block = inference.time_block(model, task, tables, limits=limits)   # in fresh processes; `combine` three

What submitters do at home and what a server does on hidden events is this code; a server runs it with
``details=False``, and refuses with codes alone (:class:`~collidium.inference.codes.Code`). It loads neither
server nor database. ``onnxruntime`` and ``onnx`` are imported by the sandboxed process alone
(:mod:`~collidium.inference.worker`), which gets bytes and returns bytes.
"""

from collidium.inference.codes import Code, ModelRefused
from collidium.inference.manifest import Manifest, interface_of, read_manifest
from collidium.inference.running import Model, check, predict
from collidium.inference.sandbox import Facts, Limits
from collidium.inference.timing import TimedBlock, Timing, combine, time_block

__all__ = [
    "Code",
    "Facts",
    "Limits",
    "Manifest",
    "Model",
    "ModelRefused",
    "TimedBlock",
    "Timing",
    "check",
    "combine",
    "interface_of",
    "predict",
    "read_manifest",
    "time_block",
]
