"""Reading of row groups that several jobs share."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from collidium.contracts.task import Column, EventRange
from collidium.scoring.blocks import Piece
from collidium.scoring.predictions import RowGroup
from collidium.scoring.span import BEGINNING_BATCH_ROWS, Disordered, PredictionsReader, Rows

EVENTS = EventRange(0, 100)
ROWS = 4 * BEGINNING_BATCH_ROWS
IN_ORDER = np.arange(ROWS) * 100 // ROWS
COLUMNS = [
    Column(name="event_id", kind="integer", description="the event"),
    Column(name="score", kind="float", description="any number"),
]


def read(path: Path, events: npt.NDArray[np.int64], stop: int, *, is_first: bool, is_last: bool) -> Rows:
    table = pa.table({"event_id": pa.array(events), "score": pa.array(np.zeros(ROWS))})
    pq.write_table(table, path / "predictions.parquet", row_group_size=ROWS)
    group = RowGroup(index=0, rows=ROWS, first=0, last=99)
    with PredictionsReader(path / "predictions.parquet", COLUMNS, EVENTS) as reader:
        return reader.read(Piece(group, is_first, is_last), stop)


def test_job_decodes_a_shared_group_no_further_than_its_events(tmp_path: Path) -> None:
    rows = read(tmp_path, IN_ORDER, 10, is_first=True, is_last=False)
    assert len(rows.events) == BEGINNING_BATCH_ROWS
    assert np.count_nonzero(rows.events < 10) == np.count_nonzero(IN_ORDER < 10)


@pytest.mark.parametrize("unknown", [-1, 1_000])
def test_unknown_events_do_not_end_the_beginning(tmp_path: Path, unknown: int) -> None:
    events = IN_ORDER.copy()
    events[BEGINNING_BATCH_ROWS - 1] = unknown
    rows = read(tmp_path, events, 30, is_first=True, is_last=False)
    assert np.count_nonzero(rows.events < 30) == np.count_nonzero(IN_ORDER < 30) - 1


def test_last_job_refuses_groups_that_others_may_have_left_early(tmp_path: Path) -> None:
    events = IN_ORDER.copy()
    events[-1] = 0
    with pytest.raises(Disordered, match="unsorted events"):
        read(tmp_path, events, 100, is_first=False, is_last=True)
    assert len(read(tmp_path, events, 100, is_first=True, is_last=True).events) == ROWS
