"""The examples on the pages on loaders and physics run."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.documents import ROOT, code_blocks


@pytest.mark.parametrize("page", ["loaders", "physics"])
def test_every_example_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    document = ROOT / "docs" / f"{page}.md"
    for block in code_blocks(document):
        needed = set(re.findall(r"\b(torch|grain)\b", block.code))
        if block.language == "python" and all(map(find_spec, needed)):
            exec(compile(block.code, f"{document.name}:{block.line}", "exec"), names)  # noqa: S102 -- our own page
