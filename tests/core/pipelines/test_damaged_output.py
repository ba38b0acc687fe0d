"""What lies in the output directory may be damaged, or somebody's idea of a joke."""

from __future__ import annotations

import pytest
from tests.core.pipelines.conftest import Machine
from tests.core.pipelines.stages import NAMES

from collidium.pipelines.production import CannotSimulate


@pytest.mark.parametrize(
    "forged",
    ["{}", '{"files": 5}', '{"files": [{"path": 5}]}', '{"files": []}', '{"files": [], "more": 1}'],
)
def test_an_invalid_finished_file_is_reported(here: Machine, forged: str) -> None:
    here.simulate()
    (here.directory / ".collidium" / "finished.json").write_text(forged)
    with pytest.raises(CannotSimulate, match="makes no sense: delete"):
        here.simulate()


@pytest.mark.parametrize("damage", ["", "[" * 100_000, "9" * 5000])
def test_stages_of_an_unknown_order_are_made_again(here: Machine, damage: str) -> None:
    with pytest.raises(CannotSimulate):
        here.simulate("lazy_reconstruct")
    (here.directory / ".collidium" / "order.json").write_text(damage)
    here.simulate(seed=43)
    assert here.ended == [(name, "done") for name in NAMES], "none of them was made with this seed before"
