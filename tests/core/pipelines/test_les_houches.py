"""Les Houches files as input: what is read of them, and what is refused before anything runs."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import pytest
from tests.core.pipelines import stages
from tests.core.pipelines.les_houches import HEAD, muon_pairs

from collidium.contracts.pipeline import LES_HOUCHES
from collidium.order import Order, UnknownOrder
from collidium.pipelines.les_houches import LesHouches
from collidium.pipelines.production import Production, check_channel
from collidium.pipelines.work import dataset_card

PIPELINE = replace(stages.contained(), channels={"ttbar": ""}, refused={"dihiggs": "no such process"})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a file.lhe.gz"
    path.write_bytes(gzip.compress(muon_pairs(3).encode()))
    return path


def test_a_file_is_counted_summed_and_unpacked(file: Path, tmp_path: Path) -> None:
    found = LesHouches.read(file)
    assert (found.events, found.picobarns, found.weights) == (3, 1900.0, (-1.5, 2.0))
    plain = tmp_path / "plain.lhe"
    plain.write_text(muon_pairs(3))
    assert LesHouches.read(plain).sha256 == found.sha256
    found.place(tmp_path)
    assert (tmp_path / LES_HOUCHES).read_text() == plain.read_text()


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"\x1f\x8b", b"\x1f\x8bnonsense", gzip.compress(HEAD.encode())[:50], HEAD.encode()),
        *(b"<init>\n1\n", b"<event>\n1 2 x\n", b"\x00" * 99),
    ],
)
def test_what_is_no_such_file_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "odd.lhe"
    path.write_bytes(content)
    with pytest.raises(UnknownOrder, match="Les Houches"):
        LesHouches.read(path)


def test_orders_keep_to_the_events_of_the_file(file: Path) -> None:
    found = LesHouches.read(file)
    found.check(Order("dihiggs", 2, 0), 1)
    with pytest.raises(UnknownOrder, match="has 3 events"):
        found.check(Order("dihiggs", 2, 0), 2)
    with pytest.raises(UnknownOrder, match="a channel is a name"):
        found.check(Order("../x", 1, 0), 0)


def test_a_pipeline_takes_a_file_or_refuses_it(file: Path) -> None:
    found, order = LesHouches.read(file), Order("dihiggs", 2, 0)
    with pytest.raises(UnknownOrder, match="takes no Les Houches file"):
        check_channel(order, PIPELINE, found)
    taking = replace(PIPELINE, takes_lhe=True)
    check_channel(order, taking, found)
    with pytest.raises(UnknownOrder, match="no such process"):
        check_channel(order, taking)
    production = Production(order, taking, lhe=found)
    assert production.identity["lhe"] == found.sha256
    card = dataset_card(production, [])
    assert "1900 pb, as the file gives it" in card
    assert f"sha256 {found.sha256}" in card
