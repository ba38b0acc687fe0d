"""The built-in pipeline: Pythia and ACTS, installed from wheels; no containers needed.

It has four stages, generate, simulate, reconstruct and write, each run as
``python -m collidium_plugins.acts_pipeline STAGE …``. docs/acts-pipeline.md lists what is modelled.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa

from collidium import hookspecs
from collidium.contracts.pipeline import TABLES, Pipeline, Stage
from collidium.contracts.task import Baseline, Tables
from collidium.order import LARGEST_SEED
from collidium_plugins.acts_pipeline.detector.layout import FIELD_TESLA
from collidium_plugins.acts_pipeline.generation.channels import CHANNELS, REFUSED
from collidium_plugins.jet_finder import FASTJET, RADIUS

#: Increase with every change of the events produced.
VERSION: Final = "acts-5"
PYTHIA: Final = "8.317.2"
ACTS: Final = "48.1.0"

#: Container image, built from the Containerfile next to this module; optional.
IMAGE: Final = f"collidium-acts:{VERSION}"

#: The entries of ``collidium.order.VARIATIONS`` that the stages support.
VARIATIONS: Final = ("field", "material", "inefficiency", "noise", "misalign", "smear", "merge", "gsf")

_ARGUMENTS: Final = (
    *("--channel", "{channel}", "--events", "{events}", "--pileup", "{pileup}"),
    *("--vary", "{vary}", "--lhe", "{lhe}"),
    *("--first-event", "{first_event}", "--processes", "{processes}", "--work", "{work}"),
)


def _stage(
    name: str, title: str, inputs: Sequence[str], outputs: Sequence[str], overhead: float, seconds: float
) -> Stage:
    return Stage(
        name=name,
        title=title,
        command=("{python}", "-m", __name__, name, *_ARGUMENTS),
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        image=IMAGE,
        resumes=True,
        overhead_seconds=overhead,
        seconds_per_event=seconds,
    )


PIPELINE: Final = Pipeline(
    name="acts",
    title="Pythia and ACTS (FATRAS) from wheels, without a container",
    version=VERSION,
    stages=(
        _stage("generate", "hard scatter, parton shower and pileup", [], ["generated"], 1.5, 0.02),
        _stage("simulate", "detector simulation", ["generated"], ["simulated", "deposits"], 5.0, 0.12),
        _stage(
            "reconstruct",
            "digitisation and reconstruction",
            ["simulated", "deposits"],
            ["reconstructed"],
            overhead=3.0,
            seconds=0.1,
        ),
        _stage("write", "tables of the hosted format", ["reconstructed", "deposits"], [TABLES], 1.0, 0.01),
    ),
    channels={name: channel.title for name, channel in CHANNELS.items()},
    refused=REFUSED,
    max_pileup=1_000,  # vertices are numbered in 16 bits, and memory is limited
    largest_seed=LARGEST_SEED,
    variations=VARIATIONS,
    takes_lhe=True,
    native=("acts", "fastjet", "pythia8mc"),
    extra="sim",
    containerfile=str(Path(__file__).parent),
    channel_facts={name: channel.facts for name, channel in CHANNELS.items()},
    facts={
        "Pipeline": f"acts, version {VERSION}",
        "Generator": f"Pythia {PYTHIA}, proton-proton at 14 TeV",
        "Tune and parton densities": "Monash 2013 (Tune:pp = 14), NNPDF2.3 QCD+QED LO (PDF:pSet = 13)",
        "Pileup": "Poisson distributed around the pileup: Pythia's SoftQCD:all, elastic collisions included",
        "Simulation and reconstruction": f"ACTS {ACTS} (FATRAS fast simulation)",
        "Jets": f"anti-kt, R = {RADIUS}, by FastJet {FASTJET}",
        "Detector": f"tracker after the Open Data Detector, {FIELD_TESLA:g} T; parametric calorimeters",
        "Documentation": "docs/acts-pipeline.md of Collidium says what is modelled and what is not",
    },
)


def _ckf(tables: Tables) -> pa.Table:
    """Tracks of ACTS's combinatorial Kalman filter, for hits on the modules of the pipeline `acts`."""
    from collidium_plugins.acts_pipeline.detector import kalman  # needs ACTS

    return kalman.reconstruct(tables)


@hookspecs.hookimpl
def collidium_baselines() -> Sequence[Baseline]:
    """Return the baseline ``ckf`` of the tracking task: the pipeline's combinatorial Kalman filter."""
    return [Baseline("tracking", "ckf", _ckf)]


@hookspecs.hookimpl
def collidium_pipelines() -> Sequence[Pipeline]:
    """Return the pipeline ``acts``."""
    return [PIPELINE]
