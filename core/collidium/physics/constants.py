"""Units and constants, in the units of the tables: mm, ns, GeV, rad, e, T."""

from __future__ import annotations

from typing import Final

from collidium.contracts import FIELD_TESLA

__all__ = ["FIELD_TESLA"]

um: Final = 1e-3
mm: Final = 1.0
cm: Final = 10.0
m: Final = 1e3
ps: Final = 1e-3
ns: Final = 1.0
MeV: Final = 1e-3
GeV: Final = 1.0
TeV: Final = 1e3
mrad: Final = 1e-3
rad: Final = 1.0

#: Speed of light, mm/ns.
SPEED_OF_LIGHT: Final = 299.792458
#: Transverse momentum in GeV is this, times the charge in e, the field in T and the radius in mm
#: (Review of Particle Physics, "Particle detectors at accelerators", momentum in a magnetic field).
BENDING: Final = SPEED_OF_LIGHT * 1e-6

#: Codes of column ``detector`` for negative endcaps; barrels have the next code, positive endcaps the one
#: after.
ECAL_CODE: Final = 9
HCAL_CODE: Final = 12
#: Energy of particles over energy in active layers, which tables hold, for codes from 9. Source: ColliderML's
#: factors for the Open Data Detector.
SAMPLING: Final = (38.7, 37.5, 38.7, 46.9, 45.0, 46.9)
