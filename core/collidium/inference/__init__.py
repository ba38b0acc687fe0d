"""Checks, runs and times submitted models in a sandbox on this machine.

::

    manifest = read_manifest(Path("manifest.toml").read_bytes(), task)
    model = Model(Path("model.onnx").read_bytes(), manifest)
    facts = check(model, task, limits=limits)               # parameters, bytes, operators
    for table in predict(model, task, blocks, limits=limits): ...   # predictions, block by block
    block = time_block(model, task, tables, limits=limits)   # in fresh processes; `combine` three

Submitters run this code locally, and servers run it on hidden events with ``details=False``: errors then have
only a :class:`~collidium.inference.messages.Code`. The package loads neither server nor database. Only the
sandboxed process (:mod:`~collidium.inference.worker`) imports ``onnxruntime`` and ``onnx``; it receives and
returns bytes.
"""
