"""The simulation form: what was typed into it, and what that orders."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from collidium.client import OrderLimits, Preset
from collidium.errors import InvalidInput

_KEY: Final = re.compile(r"[\w-]{32}", re.ASCII)
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,15}")
#: Longer is nothing that could be ordered, and is shown again.
_LONGEST: Final = 64


@dataclass(frozen=True, slots=True)
class Order:
    """What the form orders, as numbers."""

    channel: str
    events: int
    pileup: int
    seed: int


@dataclass(frozen=True, slots=True)
class Form:
    """The fields of the form, as they were typed."""

    channel: str
    events: str
    pileup: str
    seed: str
    private: bool
    #: However often it is sent, it orders once.
    key: str

    def filled_in(self, typed: Mapping[str, str]) -> Form:
        """The form with what was typed into it."""
        texts = {
            name: typed.get(name, getattr(self, name)).strip()[:_LONGEST]
            for name in ("channel", "events", "pileup", "seed")
        }
        return Form(**texts, private="private" in typed, key=self.key)

    def sent_with(self, key: str) -> Form:
        """The form as it was sent, under the key that it held."""
        return replace(self, key=key) if _KEY.fullmatch(key) else self

    @classmethod
    def untouched(cls, limits: OrderLimits, presets: Sequence[Preset]) -> Form:
        """The form as it is first shown: the first preset."""
        seed = str(limits.default_seed)
        for preset in presets:
            return cls(preset.channel, str(preset.events), str(preset.pileup), seed, False, _new_key())
        channel = limits.channels[0] if limits.channels else ""
        return cls(channel, str(limits.events.minimum), str(limits.pileup.minimum), seed, False, _new_key())

    def order(self) -> Order:
        """The order, which the backend validates. Raises InvalidInput for what is no number."""
        wrong = [name for name in ("events", "pileup", "seed") if not _WHOLE.fullmatch(getattr(self, name))]
        if wrong:
            errors = [{"field": name, "detail": "a whole number"} for name in wrong]
            raise InvalidInput(f"{' and '.join(wrong)}: whole numbers are needed", errors=errors)
        return Order(self.channel, int(self.events), int(self.pileup), int(self.seed))

    def anew(self) -> Form:
        """The same as another order."""
        return replace(self, key=_new_key())


def _new_key() -> str:
    return secrets.token_urlsafe(24)
