"""Track finding with ACTS: triplet seeds of pixel hits, combinatorial Kalman filter, ambiguity resolution."""

from __future__ import annotations

from typing import Any, Final

import acts
import acts.examples

from collidium_plugins.acts_pipeline.detector import layout
from collidium_plugins.acts_pipeline.detector.digitisation import SEEDING
from collidium_plugins.acts_pipeline.detector.geometry import GEV, LOG_LEVEL, NANOSECOND, TESLA, Detector

#: Layers with space points, by volume: the pixel barrel and the four inner discs at each end.
_SEEDING: Final = {17: (2, 4, 6, 8), 18: (2, 4, 6, 8), 16: (16, 14, 12, 10)}
_DEGREE: Final[float] = acts.UnitConstants.degree

#: Minimum pT of seeds and tracks, GeV.
SEED_PT: Final = 0.5
TRACK_PT: Final = 0.7
MAX_ABS_ETA: Final = 3.5
MIN_MEASUREMENTS: Final = 6
MAX_HOLES_AND_OUTLIERS: Final = 3
MAX_SHARED_HITS: Final = 3
#: Maximum |z| of the luminous region, mm.
_COLLISIONS: Final = 250.0
#: Maximum χ² of measurements and of outliers.
_CHI2: Final = (15.0, 25.0)


def track_finding(detector: Detector, measurements: str, tracks: str) -> list[Any]:
    """Return the algorithms that find tracks in measurements of :func:`~.digitisation.digitisation`."""
    return [
        *_seeding(detector, SEEDING + measurements),
        _filter(detector, measurements),
        acts.examples.GreedyAmbiguityResolutionAlgorithm(
            level=LOG_LEVEL,
            inputTracks="found_tracks",
            outputTracks=tracks,
            maximumSharedHits=MAX_SHARED_HITS,
            maximumIterations=1_000_000,
            nMeasurementsMin=MIN_MEASUREMENTS,
        ),
    ]


def _seeding(detector: Detector, measurements: str) -> list[Any]:
    space_points = acts.examples.SpacePointMaker(
        level=LOG_LEVEL,
        inputMeasurements=measurements,
        outputSpacePoints="space_points",
        trackingGeometry=detector.tracking_geometry,
        geometrySelection=[
            acts.GeometryIdentifier(volume=volume, layer=layer)
            for volume, layers in _SEEDING.items()
            for layer in layers
        ],
    )
    triplets = acts.examples.GridTripletSeedingAlgorithm(
        level=LOG_LEVEL,
        inputSpacePoints="space_points",
        outputSeeds="triplets",
        bFieldInZ=layout.FIELD_TESLA * TESLA,
        minPt=SEED_PT * GEV,
        cotThetaMax=10.02,  # |η| = 3
        impactMax=3.0,
        rMin=33.0,
        rMax=200.0,
        zMin=-2000.0,
        zMax=2000.0,
        zBinEdges=[-1600.0, -1000.0, -600.0, 0.0, 600.0, 1000.0, 1600.0],
        rMinMiddle=60.0,
        rMaxMiddle=120.0,
        deltaRMin=1.0,
        deltaRMax=300.0,
        collisionRegionMin=-_COLLISIONS,
        collisionRegionMax=_COLLISIONS,
        sigmaScattering=5.0,
        radLengthPerSeed=0.1,
        # Production has 40, which takes half a minute with 200 pileup collisions. Five suffice with seeds
        # ranked by impact parameter and by whether a fourth hit confirms the curvature to 0.02/GeV; the
        # default of 0.07/GeV is met by chance.
        maxSeedsPerSpM=5,
        impactWeightFactor=100.0,
        deltaInvHelixDiameter=1e-5,
        seedConfirmation=False,
    )
    parameters = acts.examples.TrackParamsEstimationAlgorithm(
        level=LOG_LEVEL,
        inputSeeds="triplets",
        outputSeeds="seeds",
        outputTrackParameters="seed_parameters",
        trackingGeometry=detector.tracking_geometry,
        magneticField=detector.field,
        initialSigmas=[1.0, 1.0, _DEGREE, _DEGREE, 0.0, NANOSECOND],
        initialSigmaQoverPt=0.1 / GEV,
        initialSigmaPtRel=0.1,
        initialVarInflation=[1.0] * 6,
    )
    return [space_points, triplets, parameters]


def _filter(detector: Detector, measurements: str) -> Any:
    geometry, field = detector.tracking_geometry, detector.field
    algorithm = acts.examples.TrackFindingAlgorithm
    chi2, outlier = _CHI2
    selection = acts.TrackSelector.Config()
    selection.ptMin = TRACK_PT * GEV
    selection.minMeasurements = MIN_MEASUREMENTS
    selection.maxHolesAndOutliers = MAX_HOLES_AND_OUTLIERS
    selection.absEtaMax = MAX_ABS_ETA
    return algorithm(
        level=LOG_LEVEL,
        inputMeasurements=measurements,
        inputSeeds="seeds",
        inputInitialTrackParameters="seed_parameters",
        outputTracks="found_tracks",
        findTracks=algorithm.makeTrackFinderFunction(geometry, field, LOG_LEVEL),
        trackingGeometry=geometry,
        magneticField=field,
        measurementSelectorCfg=acts.MeasurementSelector.Config(
            [(acts.GeometryIdentifier(), ([], [chi2], [outlier], [1]))]
        ),
        trackSelectorCfg=selection,
        twoWay=True,
        seedDeduplication=True,
        stayOnSeed=True,
        recordMaterialStates=False,  # 5 to 7% less time
    )
