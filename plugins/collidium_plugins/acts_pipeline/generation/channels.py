"""The channels: their processes and their Pythia settings.

Everything is at leading order with Pythia's default tune, at 14 TeV, fully hadronised and decayed. Where a
channel stands for a model, its masses, couplings and lifetimes are a choice of this pipeline, made so that
the signature shows, and are given in its title.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

#: Centre-of-mass energy, GeV.
ENERGY: Final = 14_000.0

#: Volume in which the generator decays particles: radius and half length of the tracker, mm.
TRACKER_RADIUS: Final = 1_100.0
TRACKER_LENGTH: Final = 3_100.0

#: Channel that is shot from a gun, without Pythia.
SINGLE_MUON: Final = "single_muon"


@dataclass(frozen=True, slots=True)
class Channel:
    """A process: its title for people, and its Pythia settings."""

    title: str
    settings: tuple[str, ...] = ()
    #: SUSY Les Houches file with the spectrum and the decays.
    spectrum: Path | None = None


#: Scalar S of the Higgs portal: mass 55 GeV, proper lifetime 100 mm.
_PORTAL_SCALAR: Final = (
    "9000025:all = S void 1 0 0 55. 0. 0. 0. 100.",
    "9000025:isResonance = off",
    "9000025:mayDecay = on",
    "9000025:addChannel = 1 1. 91 5 -5",
    "25:addChannel = 1 1. 100 9000025 9000025",
    "25:onMode = off",
    "25:onIfMatch = 9000025 9000025",
    "25:doForceWidth = on",
)

#: Two flavours of dark quarks; only flavour-diagonal dark mesons decay back, half of a shower stays unseen.
_DARK_SHOWER: Final = (
    "HiddenValley:Ngauge = 3",
    "HiddenValley:nFlav = 2",
    "HiddenValley:alphaOrder = 1",
    "HiddenValley:Lambda = 10.",
    "HiddenValley:FSR = on",
    "HiddenValley:pTminFSR = 11.",
    "HiddenValley:fragment = on",
    "4900101:m0 = 10.",
    "4900111:m0 = 20.",
    "4900113:m0 = 20.",
    "4900211:m0 = 20.",
    "4900213:m0 = 20.",
    "4900111:oneChannel = 1 0.93 91 5 -5",
    "4900111:addChannel = 1 0.07 91 15 -15",
    "4900113:oneChannel = 1 0.2 91 1 -1",
    "4900113:addChannel = 1 0.2 91 2 -2",
    "4900113:addChannel = 1 0.2 91 3 -3",
    "4900113:addChannel = 1 0.2 91 4 -4",
    "4900113:addChannel = 1 0.2 91 5 -5",
    "4900211:mayDecay = off",
    "4900213:mayDecay = off",
)

CHANNELS: Final[Mapping[str, Channel]] = MappingProxyType(
    {
        "ttbar": Channel(
            "top quark pairs from gluons and quarks, all decays",
            ("Top:gg2ttbar = on", "Top:qqbar2ttbar = on"),
        ),
        "ggf": Channel(
            "gg → H, Higgs boson of 125 GeV by gluon fusion, all decays",
            ("HiggsSM:gg2H = on", "25:m0 = 125."),
        ),
        "diphoton": Channel(
            "two prompt photons from quarks and gluons, pT of the hard process above 30 GeV",
            (
                "PromptPhoton:ffbar2gammagamma = on",
                "PromptPhoton:gg2gammagamma = on",
                "PhaseSpace:pTHatMin = 30.",
            ),
        ),
        "jets": Channel(
            "two jets by QCD, all flavours, pT of the hard process above 50 GeV",
            ("HardQCD:all = on", "PhaseSpace:pTHatMin = 50."),
        ),
        "zmumu": Channel(
            "virtual photon or Z → μμ with a mass above 60 GeV",
            (
                "WeakSingleBoson:ffbar2gmZ = on",
                "PhaseSpace:mHatMin = 60.",
                "23:onMode = off",
                "23:onIfAny = 13",
            ),
        ),
        "zee": Channel(
            "virtual photon or Z → ee with a mass above 60 GeV",
            (
                "WeakSingleBoson:ffbar2gmZ = on",
                "PhaseSpace:mHatMin = 60.",
                "23:onMode = off",
                "23:onIfAny = 11",
            ),
        ),
        "higgs_portal": Channel(
            "gg → H(125) → SS → bbbb, with a scalar S of 55 GeV and a proper lifetime cτ of 100 mm",
            ("HiggsSM:gg2H = on", "25:m0 = 125.", *_PORTAL_SCALAR),
        ),
        "susy_gmsb": Channel(
            "gluino pairs of 2 TeV, each to two light quarks and a neutralino of 500 GeV, which decays with "
            "a cτ of 100 mm to a gravitino and a photon (77%) or a Z (23%), as a bino does",
            ("SUSY:gg2gluinogluino = on", "SUSY:qqbar2gluinogluino = on", "SLHA:verbose = 0"),
            spectrum=Path(__file__).with_name("gmsb.slha"),
        ),
        "hidden_valley": Channel(
            "a mediator of 2 TeV to dark quarks, which shower and hadronise in a hidden SU(3) with two "
            "flavours (Λ 10 GeV, dark mesons of 20 GeV); half of the mesons decay back: semi-visible jets",
            (
                "HiddenValley:ffbar2Zv = on",
                "4900023:m0 = 2000.",
                "4900023:mWidth = 20.",
                "4900023:mMin = 1500.",
                "4900023:mMax = 2500.",
                "4900023:doForceWidth = on",
                "4900023:onMode = off",
                "4900023:onIfAny = 4900101",
                *_DARK_SHOWER,
            ),
        ),
        "zprime": Channel(
            "a Z' of 2 TeV with the couplings of the Z (mass above 1 TeV, no photon or Z), all decays",
            (
                "NewGaugeBoson:ffbar2gmZZprime = on",
                "Zprime:gmZmode = 3",
                "32:m0 = 2000.",
                "32:mMin = 1000.",
            ),
        ),
        SINGLE_MUON: Channel(
            "one muon of either charge from a particle gun: pT even from 1 to 100 GeV, η even from -3 to 3"
        ),
    }
)

#: Channels that this pipeline lacks, with the reason.
REFUSED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "dihiggs": "Pythia has no process gg → HH: the loops of top quarks behind it need another matrix "
        "element generator. Use the pipeline odd for it.",
    }
)

#: Inelastic proton collisions: non-diffractive, single, double and central diffractive.
MINIMUM_BIAS: Final = Channel("inelastic proton collisions", ("SoftQCD:inelastic = on",))
