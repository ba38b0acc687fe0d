"""Signals of a mix are few, and their visible energies are distributed as those of the background."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from tests.core.datasets.events import tables_of

from collidium.contracts.tables import flatten, nested
from collidium.datasets import Dataset
from collidium.datasets.publishing.mixing import Mixing, mix
from collidium.datasets.publishing.mixing_sources import matched_events
from collidium.datasets.writing import write_dataset
from collidium.errors import InvalidInput, UnusableDataset

Energies = npt.NDArray[np.float64]


def drawn(seed: int, mean: float, spread: float, events: int) -> Energies:
    return np.random.default_rng(seed).lognormal(mean, spread, events)


def auroc(signal: Energies, background: Energies) -> float:
    return float(np.searchsorted(np.sort(background), signal).mean() / len(background))


@pytest.fixture
def chance() -> np.random.Generator:
    return np.random.default_rng(3)


def test_energy_alone_does_not_separate_matched_events(chance: np.random.Generator) -> None:
    background = {"soft": drawn(1, 4.0, 0.5, 4000), "hard": drawn(2, 5.0, 0.5, 4000)}
    signals = {"heavy": drawn(3, 5.5, 0.5, 2000), "light": drawn(4, 4.0, 0.7, 2000)}
    chosen = matched_events(background, signals, 5.0, chance)
    energies = {name: (background | signals)[name][events] for name, events in chosen.items()}
    rest = np.concatenate([energies["soft"], energies["hard"]])
    everything = np.concatenate(list(background.values()))
    for name, before in signals.items():
        assert abs(auroc(before, everything) - 0.5) > 0.1
        assert auroc(energies[name], rest) == pytest.approx(0.5, abs=0.04)
        # By any function of it: no range of energies has more signal than others.
        edges = np.quantile(rest, np.linspace(0, 1, 6))
        edges[-1] *= 1.2
        counts, _ = np.histogram(energies[name], edges)
        assert counts.max() < 1.5 * counts.mean()
        assert len(energies[name]) / len(rest) == pytest.approx(0.05 / 0.95 / 2, rel=0.1)
        assert len(set(chosen[name].tolist())) == len(chosen[name])


def test_scarce_signals_reduce_the_background(chance: np.random.Generator) -> None:
    """A tenth of the mix is signal: of 30 events of the scarcer of two, 540 of the background."""
    background, signals = {"soft": np.full(4000, 5.0)}, {"one": np.full(30, 5.0), "other": np.full(900, 5.0)}
    chosen = matched_events(background, signals, 10.0, chance)
    assert {name: len(events) for name, events in chosen.items()} == {"soft": 540, "one": 30, "other": 30}


@pytest.mark.parametrize(
    ("signal", "message"),
    [
        (drawn(5, 12.0, 0.1, 100), "0 of 4000 background events"),
        (drawn(6, 9.0, 0.5, 100), "simulate more"),
    ],
    ids=["no overlap", "hardly any"],
)
def test_unmatched_energies_are_rejected(signal: Energies, message: str, chance: np.random.Generator) -> None:
    with pytest.raises(ValueError, match=message):
        matched_events({"soft": drawn(1, 4.0, 0.5, 4000)}, {"heavy": signal}, 10.0, chance)


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two channels, of which the second has twice the energy of the first."""
    directory = tmp_path_factory.mktemp("channels")
    for channel, factor in (("ttbar", 1.0), ("zprime", 2.0)):
        tables = tables_of(range(200), hits=20, seed=5)
        calo = tables["calo_hits"]
        lengths = [len(x) for x in calo["x"].to_pylist()]
        scale = np.random.default_rng(7).lognormal(0, 0.7, 200) * factor
        energy = np.repeat(scale, lengths).astype(np.float32)
        place = calo.schema.get_field_index("total_energy")
        tables["calo_hits"] = calo.set_column(place, "total_energy", nested(lengths, energy))
        write_dataset(directory / channel, f"{channel}_pu0", [tables], events_per_shard=70)
    return [directory / "ttbar", directory / "zprime"]


def test_a_mix_has_few_signals_of_the_same_energy(sources: list[Path], tmp_path: Path) -> None:
    made = mix(
        Mixing(sources, "anomaly_pu0", tmp_path / "mix", signals=["zprime"], signal_percent=10, seed=1)
    )
    assert made.channels["zprime"] == pytest.approx(made.channels["ttbar"] / 9, abs=2)
    assert 100 < made.channels["ttbar"] < 200
    dataset = Dataset(made.directory, "anomaly_pu0")
    calo = flatten(dataset.table("calo_hits").load(), ["total_energy"])
    energies = np.bincount(np.asarray(calo["event_id"]), np.asarray(calo["total_energy"], dtype=np.float64))
    names = np.array([name for (name,) in dataset.table("channels").load()["channel"].to_pylist()])
    assert len(names) == len(made.events) == len(energies)
    assert auroc(energies[names == "zprime"], energies[names == "ttbar"]) == pytest.approx(0.5, abs=0.15)


def test_invalid_signals_are_rejected(sources: list[Path], tmp_path: Path) -> None:
    for signals, message in (
        (["susy_gmsb"], "no channel susy_gmsb"),
        (["ttbar", "zprime"], "needs background"),
    ):
        with pytest.raises(UnusableDataset, match=message):
            mix(Mixing(sources, "anomaly_pu0", tmp_path / "mix", signals=signals))
    with pytest.raises(InvalidInput, match="not 100%"):
        Mixing(sources, "anomaly_pu0", tmp_path / "mix", signals=["zprime"], signal_percent=100)
