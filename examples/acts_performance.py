"""Runs the performance writers of ACTS on events of the built-in pipeline, read by ACTS's own reader::

    collidium simulate --pipeline acts --channel ttbar --events 10 --pileup 0 --output ttbar
    python examples/acts_performance.py ttbar

ACTS reads tables ``particles``, ``tracker_hits`` and ``tracks`` by ``ColliderMLRelease1InputConverter``, with
the detector that the events were simulated in, matches tracks to particles, and fills the histograms that
its continuous integration publishes. `pip install 'collidium[sim]'` brings all that it needs.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import acts
import acts.examples
import numpy as np
from acts.examples.dataset import addColliderML
from acts.examples.simulation import ParticleSelectorConfig, addDigiParticleSelection

from collidium.datasets import layout
from collidium.datasets.reading.dataset import parquet_files
from collidium_plugins.acts_pipeline.detector.geometry import GEV, build


def performance(directory: Path, events: int | None = None) -> Any:
    """Read a dataset of pipeline ``acts`` with ACTS.

    Parameters
    ----------
    directory
        A dataset in the hosted layout, with one config.
    events
        How many events to read; all by default.

    Returns
    -------
    acts.examples.PythonPatternRecognitionPerformanceWriter
        Its ``stats()`` are counts and rates, its ``histograms()`` efficiencies and fake and duplicate rates.
    """
    paths = list(parquet_files(directory))
    folders = {
        table: directory / Path(layout.shards(paths, table)[0]).parent
        for table in ("particles", "tracker_hits", "tracks")
    }
    sequencer = acts.examples.Sequencer(
        events=events, numThreads=1, logLevel=acts.logging.WARNING, trackFpes=False
    )
    addColliderML(
        sequencer,
        build().tracking_geometry,
        particlesDir=folders["particles"],
        hitsDir=folders["tracker_hits"],
        tracksDir=folders["tracks"],
        logLevel=acts.logging.WARNING,
    )
    sequencer.addWhiteboardAlias("particles_simulated_selected", "particles")
    addDigiParticleSelection(
        sequencer,
        ParticleSelectorConfig(
            rho=(0.0, 24.0),
            absZ=(0.0, 1000.0),
            absEta=(0.0, 3.0),
            pt=(0.999 * GEV, None),
            measurements=(6, None),
            removeNeutral=True,
        ),
        logLevel=acts.logging.WARNING,
    )
    sequencer.addAlgorithm(
        acts.examples.TrackTruthMatcher(
            level=acts.logging.WARNING,
            inputTracks="colliderml_tracks",
            inputParticles="particles",
            inputMeasurementParticlesMap="measurement_particles_map",
            outputTrackParticleMatching="track_particles",
            outputParticleTrackMatching="particle_tracks",
            matchingRatio=0.5,
        )
    )
    writer = acts.examples.PythonPatternRecognitionPerformanceWriter(
        level=acts.logging.WARNING,
        inputTracks="colliderml_tracks",
        inputParticles="particles_selected",
        inputTrackParticleMatching="track_particles",
        inputParticleTrackMatching="particle_tracks",
        inputParticleMeasurementsMap="particle_measurements_map",
    )
    sequencer.addWriter(writer)
    sequencer.run()
    return writer


def main() -> None:
    """Print the counts, and the efficiency in bins of eta."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--events", type=int, help="default: all")
    arguments = parser.parse_args()
    writer = performance(arguments.directory, arguments.events)
    efficiency = writer.histograms()["trackeff_vs_eta"]
    edges = np.asarray(efficiency.total.axis(0).edges)
    passed, total = (np.asarray(histogram.values()) for histogram in (efficiency.accepted, efficiency.total))
    print(json.dumps(writer.stats(), indent=2))
    for low, high, found, there in zip(edges[:-1], edges[1:], passed, total, strict=True):
        if there:
            print(f"eta {low:5.2f} to {high:5.2f}: {found:.0f} of {there:.0f} particles found")


if __name__ == "__main__":
    main()
