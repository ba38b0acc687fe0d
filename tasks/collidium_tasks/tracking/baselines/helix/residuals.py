"""How well hits fit to a helix, and how much more likely that is than chance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from collidium_tasks.tracking.baselines import Floats
from collidium_tasks.tracking.baselines.helix.detector import Hits
from collidium_tasks.tracking.baselines.helix.geometry import Helix

#: Angle by which a helix errs at 1 GeV, in rad GeV: multiple scattering (Highland's formula, Review of
#: Particle Physics, "Passage of particles through matter") and the fit, tuned on three events.
SCATTERING = 3.5e-3

#: Angle by which a helix errs at any momentum, in rad.
MISALIGNMENT = 1e-3

#: Particles are taken for pions, mass in GeV: slow ones scatter more, by 1/beta.
PION_MASS = 0.14

#: Largest sum of squared pulls, two degrees of freedom, of a hit that fits.
LARGEST_CHI2 = 16.0


@dataclass(frozen=True, slots=True)
class Prediction:
    """Where a helix passes some hits: arrays of shape (hits,), points of shape (hits, 3), in mm."""

    hit: npt.NDArray[np.intp]
    point: Floats
    #: Log of the likelihood that the hit is the helix's over the likelihood that it is there by chance.
    gain: Floats
    #: Whether the hit fits, and better than by chance.
    fits: npt.NDArray[np.bool_]


def arcs_ahead(helix: Helix, hits: Hits, chosen: npt.NDArray[np.intp]) -> Floats:
    """Transverse arc at which the helix crosses each chosen hit's sensor; in the barrel 0 to once around."""
    x, y, z = hits.position[chosen].T
    return np.where(hits.endcap[chosen], helix.arc_at_z(z), helix.arc_at(x, y))


def nearest_arcs(helix: Helix, hits: Hits, chosen: npt.NDArray[np.intp]) -> Floats:
    """As :func:`arcs_ahead`, in the barrel at most half a turn forwards or backwards."""
    arc = arcs_ahead(helix, hits, chosen)
    half_turn = np.pi * helix.radius
    return np.where(~hits.endcap[chosen] & (arc > half_turn), arc - 2 * half_turn, arc)


def compare(
    helix: Helix, hits: Hits, chosen: npt.NDArray[np.intp], arc: Floats, distance: Floats
) -> Prediction:
    """Compare chosen hits with the helix at ``arc``, which was extrapolated over ``distance`` (mm).

    In the barrel a hit may lie off the circle and along z; on a disk off the azimuth and along the
    radius. A hit is likelier than chance where a Gaussian of that width is above the density of hits.
    """
    endcap = hits.endcap[chosen]
    point = np.stack(helix.at(arc), axis=1)
    x, y = hits.position[chosen, :2].T
    dx, dy, dz = (hits.position[chosen] - point).T
    radius = np.maximum(np.hypot(point[:, 0], point[:, 1]), 1e-6)
    off_circle = np.hypot(x - helix.centre_x, y - helix.centre_y) - helix.radius
    off_azimuth = (dy * point[:, 0] - dx * point[:, 1]) / radius
    along_radius = (dx * point[:, 0] + dy * point[:, 1]) / radius
    # Seen along the sensor, a track that passes it at an angle spreads wider.
    incidence = np.where(endcap, abs(helix.cot_theta) * helix.sin_theta, helix.sin_theta)
    spread = _spread(helix, distance)
    across = np.hypot(hits.across[chosen], spread)
    along = np.hypot(hits.along[chosen], spread / np.maximum(incidence, 1e-6))
    pull_across = np.where(endcap, off_azimuth, off_circle) / across
    pull_along = np.where(endcap, along_radius, dz) / along
    chi2 = pull_across**2 + pull_along**2
    gain = -chi2 / 2 - np.log(2 * np.pi * across * along * hits.density[chosen])
    return Prediction(chosen, point, gain, (chi2 < LARGEST_CHI2) & (gain > 0))


def _spread(helix: Helix, distance: Floats) -> Floats:
    """Uncertainty of an extrapolation, in mm, at right angles to the track."""
    per_beta = np.hypot(1, PION_MASS / helix.momentum)
    spread: Floats = distance * (SCATTERING / helix.momentum * per_beta + MISALIGNMENT)
    return spread
