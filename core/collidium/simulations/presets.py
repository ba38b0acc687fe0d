"""Presets: named bundles of the three knobs."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from collidium.simulations.orders import Order

PRESETS: Final[Mapping[str, Order]] = MappingProxyType(
    {
        "ttbar-quick": Order("ttbar", events=10, pileup=0),
        "ttbar-standard": Order("ttbar", events=100, pileup=40),
        "higgs-portal-quick": Order("higgs_portal", events=10, pileup=0),
        "zmumu-quick": Order("zmumu", events=10, pileup=0),
        "muons-quick": Order("single_muon", events=100, pileup=0),
    }
)
