"""The production pipeline: MadGraph, Pythia, Geant4 and ACTS on the Open Data Detector, in containers.

Image and scripts are those of the public ColliderML production; both are pinned. The Containerfile next to
this module adds to the image what its programs download on first use: the scripts, MadGraph's interface to
Pythia, data of Geant4, and Python packages. So stages run without network and as any user.
docs/local-simulation.md lists what was verified.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from collidium import hookspecs
from collidium.contracts.pipeline import TABLES, Pipeline, Stage

#: Tag of the scripts, and the image that they require.
SCRIPTS: Final = "pipeline-v0.2.1"
BASE_IMAGE: Final = (
    "ghcr.io/opendatadetector/sw@sha256:20e4df7b0d6befd70ce0113d852350b25cbd9aac659d1bc530036a2c85a68f89"
)
#: Image built from the Containerfile.
IMAGE: Final = f"localhost/collidium-odd:{SCRIPTS}"

_CHANNELS: Final = {
    "ttbar": "top quark pairs by MadGraph, showered by Pythia",
    "higgs_portal": "Higgs bosons decaying to long-lived scalars, by Pythia",
}
_OTHERS: Final = (
    *("dihiggs", "diphoton", "ggf", "hidden_valley", "jets", "single_muon", "susy_gmsb"),
    *("zee", "zmumu", "zprime"),
)
_REASON: Final = f"its scripts at {SCRIPTS} have settings of containers only for {' and '.join(_CHANNELS)}"
#: Runs in bash, because the scripts' set-up must be sourced.
_PROGRAM: Final = (
    "bash",
    "-c",
    'source /workspace/scripts/cli/setup_container_env.sh && exec python3 /opt/collidium/stages.py "$@"',
    "odd",
)
_ARGUMENTS: Final = (
    *("--channel", "{channel}", "--events", "{events}", "--pileup", "{pileup}", "--seed", "{seed}"),
    *("--first-event", "{first_event}", "--work", "{work}"),
)


def _stage(
    name: str, title: str, inputs: Sequence[str], outputs: Sequence[str], overhead: float, seconds: float
) -> Stage:
    return Stage(
        name=name,
        title=title,
        command=(*_PROGRAM, name, *_ARGUMENTS),
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        image=IMAGE,
        overhead_seconds=overhead,
        seconds_per_event=seconds,
    )


_GENERATED: Final = "runs/0/merged_events.hepmc3"
_SIMULATED: Final = "runs/0/edm4hep.root"

PIPELINE: Final = Pipeline(
    name="odd",
    title="the Open Data Detector, fully simulated, as in production",
    version=SCRIPTS,
    stages=(
        _stage("generate", "hard scatter and parton shower", (), (_GENERATED,), 120.0, 2.0),
        _stage("simulate", "detector simulation by Geant4", (_GENERATED,), (_SIMULATED,), 60.0, 15.0),
        _stage(
            "reconstruct",
            "digitisation, reconstruction, tables of the hosted format",
            inputs=(_SIMULATED,),
            outputs=(TABLES,),
            overhead=60.0,
            seconds=4.0,
        ),
    ),
    channels=_CHANNELS,
    refused=dict.fromkeys(_OTHERS, _REASON),
    containerfile=str(Path(__file__).parent),
    facts={
        "Generator": "MadGraph5_aMC@NLO and Pythia 8, proton-proton at 14 TeV",
        "Detector": "Open Data Detector v5.0.0, Geant4 through DD4hep",
        "Pileup": "Poisson distributed around the pileup: Pythia's SoftQCD:all, elastic collisions included",
        "Reconstruction": "ACTS",
        "Scripts": f"OpenDataDetector/ColliderML-Production, {SCRIPTS}",
        "Image": BASE_IMAGE,
    },
)


@hookspecs.hookimpl
def collidium_pipelines() -> Sequence[Pipeline]:
    """Return the pipeline ``odd``."""
    return [PIPELINE]
