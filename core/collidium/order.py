"""Orders of events: channel, events, pileup, seed, variation. The same for a server and for this machine."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from collidium.errors import InvalidInput
from collidium.records import VariationLimits

if TYPE_CHECKING:
    from collidium.contracts.pipeline import Pipeline

MAX_EVENTS: Final = 100_000
MAX_PILEUP: Final = 200
DEFAULT_SEED: Final = 42
#: Long enough that a random one cannot be found by trying.
LARGEST_SEED: Final = 2**128 - 1
#: Pileup at which an event costs twice what it costs without.
_DOUBLING_PILEUP: Final = 50


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
_LONGEST_VARIATION: Final = 200


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
        if len(text) > _LONGEST_VARIATION:
            problems.append(f"at most {_LONGEST_VARIATION} characters")
        for part in text[:_LONGEST_VARIATION].split(",") if text.strip() else ():
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


@dataclass(frozen=True, slots=True)
class Order:
    """Events to be simulated: a physics process, how many of them, and the pileup overlaid on each."""

    channel: str
    events: int
    pileup: int
    seed: int = DEFAULT_SEED
    #: A systematic variation as text: equal variations are the same text, invalid ones stay as they are.
    vary: str = ""

    def __post_init__(self) -> None:
        if self.vary:
            with suppress(InvalidInput):  # check() reports it
                object.__setattr__(self, "vary", str(Variation.parse(self.vary)))

    @property
    def pileup_cost(self) -> float:
        """What an event costs relative to one without pileup."""
        return 1 + self.pileup / _DOUBLING_PILEUP

    @property
    def config(self) -> str:
        """The dataset config of the events, ``<channel>_pu<pileup>``."""
        return f"{self.channel}_pu{self.pileup}"

    def config_hash(self, pipeline_version: str) -> str:
        """Return the sha256 of order and pipeline: equal for orders that give the same events."""
        identity = {name: getattr(self, name) for name in self.__slots__}
        text = _SORTED.encode(identity | {"pipeline_version": pipeline_version})
        return hashlib.sha256(text.encode()).hexdigest()


_SORTED: Final = json.JSONEncoder(sort_keys=True)


class UnknownOrder(InvalidInput):
    """There are no such events to simulate; all problems are in ``errors``."""

    exit_code = 2


def number_ranges(max_events: int, max_pileup: int, pipeline: Pipeline | None) -> dict[str, tuple[int, int]]:
    """Return the minimum and the maximum of each number of an order."""
    largest_seed = LARGEST_SEED if pipeline is None else pipeline.largest_seed
    return {"events": (1, max_events), "pileup": (0, max_pileup), "seed": (0, largest_seed)}


def check(
    order: Order,
    channels: Collection[str] | None,
    pipeline: Pipeline | None = None,
    *,
    max_events: int = MAX_EVENTS,
    max_pileup: int = MAX_PILEUP,
) -> None:
    """Raise InvalidInput with all problems of an order.

    ``channels`` None accepts any channel, ``pipeline`` None any variation and any seed of 128 bits.
    """
    problems = []
    if pipeline is not None and order.channel in pipeline.refused:
        reason = pipeline.refused[order.channel]
        problems.append(("channel", f"pipeline {pipeline.name} cannot simulate {order.channel}: {reason}"))
    elif channels is not None and order.channel not in channels:
        known = ", ".join(sorted(channels))
        problems.append(("channel", f"there is no channel {order.channel[:100]!r}; there are: {known}"))
    for field, (minimum, maximum) in number_ranges(max_events, max_pileup, pipeline).items():
        if not minimum <= getattr(order, field) <= maximum:
            problems.append((field, f"a number from {minimum} to {maximum}"))
    try:
        varied = Variation.parse(order.vary).varied if order.vary else {}
    except InvalidInput as error:
        problems += [("vary", str(problem["detail"])) for problem in error.errors]
    else:
        if pipeline is not None and (unknown := varied.keys() - set(pipeline.variations)):
            known = ", ".join(pipeline.variations) or "nothing"
            problems.append(
                (
                    "vary",
                    f"pipeline {pipeline.name} does not vary {', '.join(sorted(unknown))}; it varies {known}",
                )
            )
    InvalidInput.raise_for([{"field": field, "detail": detail} for field, detail in problems])


def _presets() -> Mapping[str, Order]:
    bundles = tomllib.loads(Path(__file__).with_name("presets.toml").read_text("utf-8"))
    return MappingProxyType({name: Order(**parameters) for name, parameters in bundles.items()})


#: Named bundles of channel, events and pileup.
PRESETS: Final = _presets()


def order_of(
    preset: str | None,
    channel: str | None,
    events: int | None,
    pileup: int | None,
    seed: int = DEFAULT_SEED,
    vary: str = "",
) -> Order:
    """Resolve a preset, or channel, events and pileup, to an order.

    Raises UnknownOrder for both, for neither, and for an unknown preset.
    """
    if preset is None:
        if channel is None or events is None or pileup is None:
            raise UnknownOrder("give channel, events and pileup, or a preset")
        return Order(channel, events, pileup, seed, vary)
    if (channel, events, pileup) != (None, None, None):
        raise UnknownOrder("a preset sets channel, events and pileup: give one or the other")
    if preset not in PRESETS:
        detail = f"there is no preset {preset[:100]!r}; there are: {', '.join(PRESETS)}"
        raise UnknownOrder(detail, errors=[{"field": "preset", "detail": detail}])
    return replace(PRESETS[preset], seed=seed, vary=vary)
