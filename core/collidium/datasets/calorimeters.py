"""How table ``calo_hits`` names its calorimeters, and what the energy in their cells stands for."""

from __future__ import annotations

from typing import Final

#: Codes of column ``detector`` for the negative endcap; the barrel is one more, the positive endcap two more.
ECAL_CODE: Final = 9
HCAL_CODE: Final = 12

#: Energy of the particles over energy in the active layers, in the order of the codes from 9. Hosted tables
#: hold the latter; these are the factors that ColliderML publishes for the Open Data Detector.
SAMPLING: Final = (38.7, 37.5, 38.7, 46.9, 45.0, 46.9)
