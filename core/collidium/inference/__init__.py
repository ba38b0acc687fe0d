"""Submitted models: checked, run and timed in a sandbox, on this machine.

::

    manifest = read_manifest(Path("manifest.toml").read_bytes(), task)
    model = Model(Path("model.onnx").read_bytes(), manifest)
    facts = check(model, task, limits=limits)               # parameters, bytes, operators
    for table in predict(model, task, blocks, limits=limits): ...   # predictions, block by block
    block = time_block(model, task, tables, limits=limits)   # in fresh processes; `combine` three

What submitters do at home and what a server does on hidden events is this code; a server runs it with
``details=False``, and refuses with codes alone (:class:`~collidium.inference.messages.Code`). It loads
neither server nor database. ``onnxruntime`` and ``onnx`` are imported by the sandboxed process alone
(:mod:`~collidium.inference.worker`), which gets bytes and returns bytes.
"""
