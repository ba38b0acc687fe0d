"""The channels: their processes and their Pythia settings.

Everything is at leading order with Pythia's default tune, at 14 TeV, fully hadronised and decayed. Masses,
couplings, lifetimes and cuts are those of ColliderML-Production (``configs_production`` at 7ec42d3), where
Pythia has the process.
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


#: H2 of 125 GeV to two pseudoscalars A of 55 GeV and cτ 100 mm, by the settings of production.
_PORTAL: Final = (
    "Higgs:useBSM = on",
    "35:m0 = 125.",
    "35:mWidth = 0.00407",
    "35:doForceWidth = on",
    "35:onMode = off",
    "35:onIfMatch = 36 36",
    "36:oneChannel = 1 1. 101 5 -5",
    "36:m0 = 55.",
    "36:mMin = 54.5",
    "36:mMax = 55.5",
    "36:mWidth = 1.97327e-15",
    "36:tau0 = 100.",
    "36:mayDecay = on",
    "ParticleDecays:limitTau0 = off",
)

#: Dark mesons: 4900111 is stable, the others decay at once to d quarks. Production lets those off the
#: diagonal decay to u and anti-d, which does not conserve charge: Pythia then rejects most of the events.
_DARK_SHOWER: Final = (
    "HiddenValley:Ngauge = 3",
    "HiddenValley:nFlav = 4",
    "HiddenValley:FSR = on",
    "HiddenValley:fragment = on",
    "HiddenValley:alphaOrder = 1",
    "HiddenValley:setLambda = on",
    "HiddenValley:Lambda = 40.",
    "HiddenValley:pTminFSR = 44.",
    "4900111:m0 = 10.",
    "4900111:mayDecay = off",
    *(
        setting
        for meson, mass in ((4900113, 20), (4900211, 10), (4900213, 20))
        for setting in (
            f"{meson}:m0 = {mass}.",
            f"{meson}:oneChannel = 1 1. 0 1 -1",
            f"{meson}:tau0 = 0.",
        )
    ),
)

_DRELL_YAN: Final = ("WeakSingleBoson:ffbar2gmZ = on", "PhaseSpace:mHatMin = 30.", "23:onMode = off")

CHANNELS: Final[Mapping[str, Channel]] = MappingProxyType(
    {
        "ttbar": Channel(
            "top quark pairs from gluons and quarks, all decays",
            ("Top:gg2ttbar = on", "Top:qqbar2ttbar = on"),
            picobarns=604,
        ),
        "ggf": Channel(
            "gg → H, Higgs boson of 125 GeV by gluon fusion, all decays",
            ("HiggsSM:gg2H = on", "25:m0 = 125."),
            picobarns=29.5,
        ),
        "diphoton": Channel(
            "two prompt photons from quarks and gluons, each with pT above 20 GeV and η from -2.5 to 2.5",
            (
                "PromptPhoton:ffbar2gammagamma = on",
                "PromptPhoton:gg2gammagamma = on",
                "PhaseSpace:pTHatMin = 20.",
            ),
            photons=(20.0, 2.5),
            picobarns=86.4,
        ),
        "jets": Channel(
            "two jets by QCD, all flavours, pT of the hard process above 50 GeV",
            ("HardQCD:all = on", "PhaseSpace:pTHatMin = 50."),
            picobarns=2.55e7,
        ),
        "zmumu": Channel(
            "virtual photon or Z → μμ with a mass above 30 GeV",
            (*_DRELL_YAN, "23:onIfAny = 13"),
            picobarns=1930,
        ),
        "zee": Channel(
            "virtual photon or Z → ee with a mass above 30 GeV",
            (*_DRELL_YAN, "23:onIfAny = 11"),
            picobarns=1930,
        ),
        "higgs_portal": Channel(
            "gg → H(125) → AA → bbbb, with a pseudoscalar A of 55 GeV and a proper lifetime cτ of 100 mm",
            ("HiggsBSM:gg2H2 = on", *_PORTAL),
            picobarns=0.816,
        ),
        "susy_gmsb": Channel(
            "neutralino pairs from quarks; the lightest neutralino, of 204 GeV, decays with a cτ of 100 mm "
            "to a photon and a gravitino",
            (
                "SUSY:qqbar2chi0chi0 = on",
                "SLHA:verbose = 0",
                "SLHA:minMassSM = 100.",
                "1000022:oneChannel = 1 1. 0 1000039 22",
                "1000022:mayDecay = on",
                "1000022:tau0 = 100.",
                "ParticleDecays:limitTau0 = off",
            ),
            spectrum=Path(__file__).with_name("gmsb.slha"),
            picobarns=0.00411,
        ),
        "hidden_valley": Channel(
            "gg → pairs of heavy quarks with the charge of a hidden SU(3) of four flavours (Λ 40 GeV); "
            "diagonal dark mesons of 10 GeV stay unseen, the others decay to quarks",
            ("HiddenValley:gg2DvDvbar = on", *_DARK_SHOWER),
            picobarns=4.29,
        ),
        "zprime": Channel(
            "a Z' of 3 TeV with the couplings of the Z (no photon or Z) → ee or μμ",
            (
                "NewGaugeBoson:ffbar2gmZZprime = on",
                "Zprime:gmZmode = 3",
                "32:m0 = 3000.",
                "32:mWidth = 30.",
                "32:onMode = off",
                "32:onIfAny = 11 13",
            ),
            picobarns=0.00425,
        ),
        SINGLE_MUON: Channel(
            "one muon of either charge from a particle gun: pT even from 1 to 100 GeV, η even from -3 to 3"
        ),
        MUON_GUN: Channel(
            "two such muons of 1 to 10 GeV, as the Open Data Detector's continuous integration shoots"
        ),
    }
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
    multiparton=Path(__file__).with_name("minimum_bias-8.317.mpi"),
)
