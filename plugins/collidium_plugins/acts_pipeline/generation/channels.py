"""The channels and their Pythia settings.

Processes are at leading order, with Pythia's default tune, at 14 TeV, fully hadronised and decayed.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

import msgspec

_FOLDER: Final = Path(__file__).parent
#: Centre-of-mass energy, GeV.
ENERGY: Final = 14_000.0

#: Pythia decays particles within this volume: radius and half length of the tracker, mm.
TRACKER_RADIUS: Final = 1_100.0
TRACKER_LENGTH: Final = 3_100.0

#: Channels of the particle gun, which do not use Pythia.
SINGLE_MUON: Final = "single_muon"
MUON_GUN: Final = "muon_gun"
#: Muons per event and their maximum pT, GeV.
GUNS: Final = MappingProxyType({SINGLE_MUON: (1, 100.0), MUON_GUN: (2, 10.0)})


@dataclass(frozen=True, slots=True)
class Channel:
    """A physics process: its title and its Pythia settings."""

    title: str
    settings: tuple[str, ...] = ()
    #: SUSY Les Houches file (SLHA) with the spectrum and the decays.
    spectrum: Path | None = None
    #: Les Houches event file (LHEF) with the hard processes, one per event.
    events: Path | None = None
    #: Initialisation of multiparton interactions for these settings, which otherwise takes six seconds.
    #: Written with ``MultipartonInteractions:reuseInit = 1``; only for the Pythia version in its name.
    multiparton: Path | None = None
    #: Minimum pT in GeV and maximum |η| of photons of the hard process.
    photons: tuple[float, float] | None = None
    #: Leading-order cross section in pb, computed by Pythia with these settings.
    picobarns: float | None = None

    @property
    def facts(self) -> Mapping[str, str]:
        """Normalisation of the channel's events, for the card of a dataset."""
        if self.picobarns is None:
            return {"Weights": "none: a particle gun"}
        return {
            "Cross section": f"{self.picobarns:.3g} pb at leading order (Pythia; decays and cuts included)",
            "Weights": "1 for each event",
        }


CHANNELS: Final[Mapping[str, Channel]] = MappingProxyType(
    msgspec.convert(
        tomllib.loads(_FOLDER.joinpath("channels.toml").read_text(encoding="utf-8")),
        dict[str, Channel],
        dec_hook=lambda _, file: _FOLDER / file,
    )
)


def les_houches(events: Path) -> Channel:
    """Return the channel of a Les Houches event file, whose events Pythia showers, hadronises and decays."""
    return Channel("hard processes of a Les Houches file", ("Beams:frameType = 4",), events=events)


#: Channels that this pipeline does not support, with the reason.
REFUSED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "dihiggs": "Pythia has no process gg → HH: the loops of top quarks behind it need another matrix "
        "element generator. Give its events with --lhe.",
    }
)

#: Pileup collisions as in production: non-diffractive, diffractive and elastic.
MINIMUM_BIAS: Final = Channel(
    "soft proton collisions, elastic ones included",
    ("SoftQCD:all = on",),
    multiparton=_FOLDER / "minimum_bias-8.317.mpi",
)
