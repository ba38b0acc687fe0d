"""Which hadrons decide the flavour of a jet."""

from __future__ import annotations

import numpy as np
import pytest

from collidium_plugins.jet_finder.table import WEAKLY_DECAYING, flavour_of, strongest

BOTTOM = {"B0": 511, "B+": 521, "Bs": 531, "Bc": 541, "Lambda_b": 5122, "Xi_b-": 5132, "Xi_b0": 5232}
CHARM = {"D+": 411, "D0": 421, "Ds": 431, "Lambda_c": 4122, "Xi_c0": 4132, "Xi_c+": 4232, "Omega_c": 4332}
OTHERS = {
    "B* (to B + photon)": 513,
    "B*+": 523,
    "Bs*": 533,
    "D*0 (to D0π)": 423,
    "D*+": 413,
    "Ds*": 433,
    "D1": 10423,
    "B2*": 525,
    "Σb (to Λbπ)": 5112,
    "Σb*": 5114,
    "Σc": 4112,
    "Ξ'c (to Ξc + photon)": 4312,
    "Ω*b": 5334,
    "J/ψ": 443,
    "ψ(2S)": 100443,
    "ηc": 441,
    "Upsilon": 553,
    "π": 211,
    "K0S": 310,
    "Λ": 3122,
    "b quark": 5,
    "c quark": 4,
    "bu diquark": 5201,
    "cd diquark": 4103,
    "electron": 11,
    "neutralino": 1000022,
    "R-hadron": 1000512,
    "dark meson": 4900111,
    "B0 of a string, excited": 100511,
    "nothing": 0,
}


@pytest.mark.parametrize(
    ("names", "flavour"), [(BOTTOM, 5), (CHARM, 4), (OTHERS, 0)], ids=["bottom", "charm", "others"]
)
def test_flavours_of_particles(names: dict[str, int], flavour: int) -> None:
    ids = np.array(list(names.values()))
    for sign in (1, -1):
        flavours = dict(zip(names, flavour_of(sign * ids).tolist(), strict=True))
        assert flavours == dict.fromkeys(names, flavour)


def test_flavours_are_those_of_the_heaviest_quark() -> None:
    for number, flavour in WEAKLY_DECAYING.items():
        quarks = [number // 10**digit % 10 for digit in (1, 2, 3)]
        assert max(quarks) == flavour, number


def test_b_counts_before_c_and_hadrons_outside_of_jets_do_not() -> None:
    flavours = np.array([4, 5, 4, 5, 4], np.uint8)
    jet = np.array([0, 0, 1, -1, -1])
    assert strongest(flavours, jet, 3).tolist() == [5, 4, 0]
    assert strongest(flavours[:0], jet[:0], 0).tolist() == []
