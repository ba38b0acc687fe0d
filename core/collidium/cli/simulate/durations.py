"""Times as people type them: 90, 90s, 30m, 2h, 1h30m, 1d."""

from __future__ import annotations

import re
from typing import Final

import click

_SECONDS: Final = {"d": 86_400, "h": 3600, "m": 60, "s": 1}
_DURATION: Final = re.compile(r"(?:(\d{1,4})d)?(?:(\d{1,5})h)?(?:(\d{1,7})m)?(?:(\d{1,9})s?)?", re.IGNORECASE)


class Duration(click.ParamType[float]):
    """A time, in seconds."""

    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        seconds = parse(str(value).strip())
        if not seconds:
            self.fail(f"{value!r} is no time: write for example 90s, 30m, 2h or 1h30m", param, ctx)
        return seconds


def parse(text: str) -> float:
    """The seconds that are meant; 0 for what is no time."""
    match = _DURATION.fullmatch(text)
    if match is None:
        return 0
    return float(
        sum(int(number or 0) * s for number, s in zip(match.groups(), _SECONDS.values(), strict=True))
    )
