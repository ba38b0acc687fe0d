"""Reads the project's documents: sections and blocks of code, so that tests can run what they show."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]

_HEADING = re.compile(r"^(#{1,6}) (.+?)\s*$")
_FENCE = re.compile(r"^```(\w*)\s*$")
_COMMENT = re.compile(r"^<!-- (.+?) -->\s*$")


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """A fenced block: its language, the section it stands in, and the HTML comment right above it."""

    language: str
    section: str
    remark: str
    code: str
    line: int


def code_blocks(document: Path) -> list[CodeBlock]:
    """The fenced blocks of a Markdown document, in order."""
    blocks = []
    section = remark = ""
    lines = iter(enumerate(document.read_text().splitlines(), start=1))
    for number, line in lines:
        if heading := _HEADING.match(line):
            section = heading[2]
        elif comment := _COMMENT.match(line):
            remark = comment[1]
        elif fence := _FENCE.match(line):
            code = []
            for _, inner in lines:
                if inner.rstrip() == "```":
                    break
                code.append(inner)
            blocks.append(CodeBlock(fence[1], section, remark, "\n".join(code) + "\n", number))
            remark = ""
    return blocks


def headings(document: Path) -> list[str]:
    """The headings of a Markdown document, outside of its blocks of code."""
    outside = re.sub(r"^```.*?^```", "", document.read_text(), flags=re.MULTILINE | re.DOTALL)
    return [found[2] for line in outside.splitlines() if (found := _HEADING.match(line))]
