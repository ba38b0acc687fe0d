"""Tables and records for people, laid out for the terminal that they are shown on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from collidium.cli.text import wrapped

GAP = "  "


def table_lines(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int | None) -> Iterator[str]:
    """The rows below their headings where that fits into ``width`` columns, else a small record for each.

    Nothing is ever cut or broken inside a word, and no line ends with spaces.
    """
    widths = [max(map(len, cells)) for cells in zip(columns, *rows, strict=True)]
    if width is not None and sum(widths) + len(GAP) * (len(widths) - 1) > width:
        if not rows:
            yield "(none)"
        for number, row in enumerate(rows):
            if number:
                yield ""
            yield from record_lines(dict(zip(columns, row, strict=True)), width)
        return
    for cells in (columns, *rows):
        yield GAP.join(f"{text:<{size}}" for text, size in zip(cells, widths, strict=True)).rstrip()


def record_lines(record: Mapping[str, str], width: int | None) -> Iterator[str]:
    """Names and values, a line each; a long value goes on below where it began."""
    size = max(map(len, record), default=0)
    for name, value in record.items():
        label = f"{name:<{size}}{GAP}"
        yield from wrapped(value, width, first=label, rest=" " * len(label)).splitlines()
