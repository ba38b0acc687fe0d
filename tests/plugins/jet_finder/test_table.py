"""The table of jets, of events made by hand."""

from __future__ import annotations

from math import pi

import numpy as np
import pyarrow as pa
import pytest
from tests.plugins.jet_finder.events import Cell, Particle, calo_hits, particles, scattered

from collidium.datasets.schemas import SCHEMAS
from collidium.errors import UnusableDataset
from collidium_plugins.jet_finder.clustering import deposits
from collidium_plugins.jet_finder.table import jets

B0, D0, PION = 511, 421, 211


def of(cells: list[Cell], ones: list[Particle] | None = None) -> dict[str, list[object]]:
    """The jets of one event."""
    table = jets(calo_hits(cells), None if ones is None else particles(ones))
    assert table.schema.equals(SCHEMAS["jets"], check_metadata=True)
    made: dict[str, list[object]] = table.to_pylist()[0]
    return made


def test_cells_that_are_near_are_a_jet() -> None:
    event = of([Cell(30, 0.5, 1.0), Cell(40, -1.0, -2.0), Cell(15, 0.6, 1.1), Cell(19, 2.0, 0.0)], [])
    assert event["jet_id"] == [0, 1]
    assert event["pt"] == pytest.approx([44.95, 40.0], abs=0.001)
    assert event["eta"] == pytest.approx([0.534, -1.0], abs=0.001)
    assert event["phi"] == pytest.approx([1.033, -2.0], abs=0.001)
    assert event["mass"] == pytest.approx([3.0, 0.0], abs=0.05)
    assert event["constituents"] == [[0, 2], [1]]
    assert event["flavour"] == [0, 0]


def test_a_jet_may_lie_where_the_azimuth_begins() -> None:
    event = of([Cell(30, 0, pi - 0.01), Cell(30, 0, 0.01 - pi)])
    assert event["constituents"] == [[0, 1]]


@pytest.mark.parametrize(
    ("cell", "kept"),
    [
        (Cell(20.1, 0, 0), True),
        (Cell(19.9, 0, 0), False),
        (Cell(50, 2.49, 0), True),
        (Cell(50, -2.51, 0), False),
    ],
)
def test_which_jets_are_kept(cell: Cell, kept: bool) -> None:
    assert len(of([cell])["pt"]) == kept


def test_cells_with_little_energy_belong_to_no_jet() -> None:
    assert of([Cell(30, 0, 0), Cell(0.019, 0, 0.1), Cell(0.021, 0, -0.1)])["constituents"] == [[0, 2]]


@pytest.mark.parametrize(
    ("ones", "flavour"),
    [
        ([Particle(B0, 20, 0.1, 0.1)], 5),
        ([Particle(-D0, 20, 0.1, 0.1)], 4),
        ([Particle(D0, 20, 0.1, 0.1), Particle(-B0, 6, 0.2, 0.0)], 5),
        ([Particle(PION, 30, 0.0, 0.0)], 0),
        ([Particle(B0, 4.9, 0.0, 0.0)], 0),
        ([Particle(B0, 20, 0.0, 0.0, vertex=2)], 0),
        ([Particle(B0, 20, 0.0, 0.5)], 0),
        ([], 0),
    ],
    ids=["b", "c", "b before c", "pion", "soft", "of pileup", "outside", "none"],
)
def test_the_flavour_is_that_of_a_hadron_in_the_jet(ones: list[Particle], flavour: int) -> None:
    assert of([Cell(50, 0, 0)], ones)["flavour"] == [flavour]


def test_a_hadron_between_two_jets_belongs_to_one() -> None:
    """At 0.35 from both it goes with the harder one, whose cone anti-kt leaves whole."""
    event = of([Cell(90, 0, 0), Cell(30, 0, 0.7)], [Particle(B0, 20, 0, 0.35)])
    assert event["flavour"] == [5, 0]


def test_hadrons_change_nothing_but_the_flavour() -> None:
    random = np.random.default_rng(3)
    cells = scattered(random, 200, 5)
    ones = [Particle(B0, *cell) for cell in scattered(random, 20, 1e8)]
    labelled, unlabelled = of(cells, ones), of(cells)
    assert {**labelled, "flavour": None} == unlabelled
    assert len(labelled["pt"]) > 5
    assert set(labelled["flavour"]) == {0, 5}


def test_jets_do_not_reveal_the_order_of_cells() -> None:
    """To the last bit, which sums of jets depend on."""
    random = np.random.default_rng(7)
    cells = scattered(random, 100, 4)
    shuffled = random.permutation(len(cells)).tolist()
    made, again = deposits(calo_hits(cells)), deposits(calo_hits([cells[place] for place in shuffled]))
    for name in ("px", "py", "pz", "energy"):
        assert np.array_equal(getattr(made.vectors, name), getattr(again.vectors, name))
    assert made.place.tolist() == [shuffled[place] for place in again.place]


def test_neither_the_order_of_cells_nor_other_events_change_jets() -> None:
    random = np.random.default_rng(5)
    events = [scattered(random, 300, 4) for _ in range(3)]
    ones = [Particle(B0, 30, 0, 0)]
    together = jets(calo_hits(*events), particles(ones, ones, ones))
    for number, cells in enumerate(events):
        shuffled = random.permutation(len(cells))
        alone = of([cells[place] for place in shuffled], ones)
        assert len(alone["pt"]) > 2
        alone["constituents"] = [sorted(shuffled[jet].tolist()) for jet in alone["constituents"]]
        assert together.slice(number, 1).to_pylist()[0] == {**alone, "event_id": number}


def test_events_without_cells_or_jets_have_empty_lists() -> None:
    table = jets(calo_hits([], [Cell(1, 0, 0)]), particles([Particle(B0, 20, 0, 0)], []))
    assert table.column("pt").to_pylist() == [[], []]
    assert table.column("constituents").to_pylist() == [[], []]
    assert jets(calo_hits(), particles()).num_rows == 0


@pytest.mark.parametrize("column", ["detector", "x", "total_energy"])
def test_cells_that_lack_a_column_are_refused(column: str) -> None:
    with pytest.raises(UnusableDataset, match=f"calo_hits lacks {column}"):
        jets(calo_hits([Cell(30, 0, 0)]).drop_columns(column), None)


def changed(table: pa.Table, column: str, values: list[object]) -> pa.Table:
    index = table.schema.get_field_index(column)
    return table.set_column(index, column, pa.array(values, table.schema.field(index).type))


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("detector", [[3]], "has codes other than 9 to 14"),
        ("x", [[float("nan")]], "values that are not finite"),
        ("x", [[None]], "column x: has nulls"),
        ("x", [[1.0, 2.0]], "differ in length"),
    ],
)
def test_cells_that_make_no_sense_are_refused(column: str, values: list[object], message: str) -> None:
    with pytest.raises(UnusableDataset, match=message):
        jets(changed(calo_hits([Cell(30, 0, 0)]), column, values), None)


def test_particles_without_flavours_are_refused() -> None:
    cells, ones = calo_hits([Cell(30, 0, 0)]), particles([Particle(B0, 20, 0, 0)])
    with pytest.raises(UnusableDataset, match="particles lacks pz, energy"):
        jets(cells, ones.drop_columns(["pz", "energy"]))
    with pytest.raises(UnusableDataset, match="its truth may be withheld"):
        jets(cells, changed(ones, "pdg_id", [None]))
