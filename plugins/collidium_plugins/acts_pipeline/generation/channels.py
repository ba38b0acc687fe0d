"""The channels: their processes and their Pythia settings.

Everything is at leading order with Pythia's default tune, at 14 TeV, fully hadronised and decayed.
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

#: Volume in which the generator decays particles: radius and half length of the tracker, mm.
TRACKER_RADIUS: Final = 1_100.0
TRACKER_LENGTH: Final = 3_100.0

#: Channels that are shot from a gun, without Pythia.
SINGLE_MUON: Final = "single_muon"
MUON_GUN: Final = "muon_gun"
#: Muons in an event of theirs, and the maximum pT, GeV.
GUNS: Final = MappingProxyType({SINGLE_MUON: (1, 100.0), MUON_GUN: (2, 10.0)})


@dataclass(frozen=True, slots=True)
class Channel:
    """A process: its title for people, and its Pythia settings."""

    title: str
    settings: tuple[str, ...] = ()
    #: SUSY Les Houches file with the spectrum and the decays.
    spectrum: Path | None = None
    #: Les Houches file with the hard processes, one for each event.
    events: Path | None = None
    #: What Pythia found when it set up multiparton interactions with these settings, which takes six seconds;
    #: it writes the file with ``MultipartonInteractions:reuseInit = 1``. Other versions than that of the
    #: file's name do not use it.
    multiparton: Path | None = None
    #: Photons of the hard process must have these: minimum pT in GeV and maximum |η|.
    photons: tuple[float, float] | None = None
    #: Cross section in pb, at leading order, by Pythia with these settings.
    picobarns: float | None = None

    @property
    def facts(self) -> Mapping[str, str]:
        """What the card of a dataset of the channel says of its normalisation."""
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
    """Return the channel of a Les Houches file, which Pythia showers, hadronises and decays."""
    return Channel("hard processes of a Les Houches file", ("Beams:frameType = 4",), events=events)


#: Channels that this pipeline lacks, with the reason.
REFUSED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "dihiggs": "Pythia has no process gg → HH: the loops of top quarks behind it need another matrix "
        "element generator. Give its events with --lhe.",
    }
)

#: Collisions of pileup, as in production: non-diffractive, diffractive and elastic.
MINIMUM_BIAS: Final = Channel(
    "soft proton collisions, elastic ones included",
    ("SoftQCD:all = on",),
    multiparton=_FOLDER / "minimum_bias-8.317.mpi",
)
