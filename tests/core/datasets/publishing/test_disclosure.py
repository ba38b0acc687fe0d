"""The history of a repository: truth is withheld from its first version on, or not at all."""

from __future__ import annotations

import pytest

from collidium.datasets.publishing.publication import with_history
from collidium.datasets.publishing.version import ConfigFiles
from collidium.errors import Conflict


def config(first: int, stop: int, withheld: str | None = None, opened: tuple[str, ...] = ()) -> ConfigFiles:
    return ConfigFiles("ttbar_pu0", stop - first, first, stop - 1, [], withheld, None, opened)


def opened(*versions: ConfigFiles) -> list[str]:
    """What has been disclosed after these versions, one after the other."""
    last = with_history(versions[0], {})
    for version in versions[1:]:
        last = with_history(version, {last.name: last})
    return list(last.opened)


def test_disclosed_ranges_are_merged() -> None:
    assert opened(config(0, 10)) == ["0:10"]
    assert opened(config(0, 10, "5:8")) == ["0:5", "8:10"]
    assert opened(config(0, 10, "0:10")) == []
    assert opened(config(0, 10, "5:8"), config(0, 20, "5:8")) == ["0:5", "8:20"]
    assert opened(config(0, 10), config(0, 4)) == ["0:10"]
    assert opened(config(0, 5), config(0, 10, "5:10"), config(0, 20, "5:20")) == ["0:5"]


@pytest.mark.parametrize(
    "versions",
    [
        (config(0, 10), config(0, 10, "5:8")),
        (config(0, 10), config(0, 4), config(0, 10, "8:10")),
        (config(0, 10, "5:8"), config(0, 10, "5:9")),
        (config(0, 9), config(0, 10, "8:10")),
    ],
)
def test_disclosed_truth_cannot_be_withheld(versions: tuple[ConfigFiles, ...]) -> None:
    with pytest.raises(Conflict, match="cannot be withheld any more"):
        opened(*versions)


@pytest.mark.parametrize("later", [config(0, 10), config(0, 10, "6:8"), config(0, 10, "5:7"), config(0, 3)])
def test_withheld_truth_is_not_disclosed_by_mistake(later: ConfigFiles) -> None:
    with pytest.raises(Conflict, match="add --withhold-truth 5:8"):
        opened(config(0, 10, "5:8"), later)


def test_configs_have_separate_histories() -> None:
    other = ConfigFiles("zmumu_pu0", 10, 0, 9, [])
    assert with_history(config(0, 10, "5:8"), {"zmumu_pu0": other}).opened == ["0:5", "8:10"]
