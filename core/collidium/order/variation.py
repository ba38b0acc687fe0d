"""Systematic variations of the detector: what can be varied, within which limits, and their text."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

import msgspec

from collidium.errors import InvalidInput

LONGEST_VARIATION: Final = 200


class VariationLimits(msgspec.Struct, frozen=True):
    """Range of a detector variation, both ends included."""

    name: str
    minimum: float
    maximum: float
    nominal: float
    description: str


#: What can be varied in the detector and in the fit of tracks, with limits and nominal value.
VARIATIONS: Final = {
    limits.name: limits
    for limits in (
        VariationLimits("field", 0.5, 1.5, 1.0, "factor of the magnetic field"),
        VariationLimits("material", 0.1, 3.0, 1.0, "factor of the thickness of the tracker's material"),
        VariationLimits("inefficiency", 0.0, 0.5, 0.0, "fraction of the tracker's hits that are lost"),
        VariationLimits(
            "noise", 0.0, 1e-5, 0.0, "probability of a noise hit for each channel of the tracker"
        ),
        VariationLimits("misalign", 0.0, 1000.0, 0.0, "standard deviation of module positions in µm"),
        VariationLimits("smear", 1.0, 10.0, 1.0, "factor of the tracker's resolution"),
        VariationLimits("merge", 0.0, 1.0, 0.0, "1: clusters of several particles that touch are merged"),
        VariationLimits(
            "gsf", 0.0, 32.0, 0.0, "components of a Gaussian-sum fit of tracks as electrons; 0: Kalman filter"
        ),
    )
}


@dataclass(frozen=True, slots=True)
class Variation:
    """A systematic variation of the detector, nominal by default. Units and limits: :data:`VARIATIONS`.

    Examples
    --------
    >>> variation = Variation.parse("smear=1.20, field=0.99,misalign=10um")
    >>> variation.field, variation.material
    (0.99, 1.0)
    >>> str(variation)
    'field=0.99,misalign=10um,smear=1.2'
    """

    field: float = 1.0
    material: float = 1.0
    inefficiency: float = 0.0
    noise: float = 0.0
    misalign: float = 0.0
    smear: float = 1.0
    merge: float = 0.0
    gsf: float = 0.0

    @classmethod
    def parse(cls, text: str) -> Variation:
        """Read ``name=value,name=value``; an empty text is nominal. Raises InvalidInput with all problems."""
        values, problems = {}, []
        if len(text) > LONGEST_VARIATION:
            problems.append(f"at most {LONGEST_VARIATION} characters")
        for part in text[:LONGEST_VARIATION].split(",") if text.strip() else ():
            name, _, number = (word.strip() for word in part.partition("="))
            limits = VARIATIONS.get(name)
            if limits is None:
                problems.append(f"{name[:40]!r} cannot be varied; there are: {', '.join(VARIATIONS)}")
            elif name in values:
                problems.append(f"{name} is given twice")
            else:
                values[name] = value = _number(number.removesuffix("um") if name == "misalign" else number)
                if value is None or not limits.minimum <= value <= limits.maximum:
                    problems.append(f"{name}: a number from {limits.minimum:g} to {limits.maximum:g}")
        if problems:
            raise InvalidInput(
                "; ".join(problems), errors=[{"field": "vary", "detail": detail} for detail in problems]
            )
        return cls(**values)  # type: ignore[arg-type]  # None is a problem

    @property
    def varied(self) -> dict[str, float]:
        """What is not nominal."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if value != VARIATIONS[name].nominal}

    def __str__(self) -> str:
        return ",".join(
            f"{name}={value!r}".removesuffix(".0") + ("um" if name == "misalign" else "")
            for name, value in self.varied.items()
        )


NOMINAL: Final = Variation()


def _number(text: str) -> float | None:
    """A number in ASCII; None for anything else, NaN included."""
    try:
        value = float(text) if text.isascii() and "_" not in text else None
    except ValueError:
        return None
    return value
