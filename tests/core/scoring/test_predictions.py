"""Bad files are rejected with their exact problems, and leave nothing behind."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import toy_task
from toy_task import Make, Score

from collidium.client.predictions import write_predictions
from collidium.contracts.executor import Limits
from collidium.datasets import Dataset
from collidium.errors import InvalidInput
from collidium.scoring.blocks import PlanRequest, make_plan

ROWS = sum(toy_task.SIZES)

Write = Callable[[Path], None]


def good() -> pa.Table:
    return toy_task.items()


def replaced(column: str, values: object, **options: object) -> Write:
    """A file in which one column holds something else."""

    def write(path: Path) -> None:
        table = good()
        filled = values if isinstance(values, pa.Array) else pa.array(values)
        index = table.column_names.index(column)
        pq.write_table(table.set_column(index, column, filled), path, **options)

    return write


def some(column: str, *values: object) -> Write:
    """A file in which the last values of a column are others."""

    def write(path: Path) -> None:
        kept = good().column(column).to_pylist()
        replaced(column, pa.array([*kept[: -len(values)], *values]))(path)

    return write


def raw(content: bytes) -> Write:
    return lambda path: path.write_bytes(content) and None


def good_bytes(tmp: Path, **options: object) -> bytes:
    pq.write_table(good(), tmp, **options)
    data = tmp.read_bytes()
    tmp.unlink()
    return data


def truncated(path: Path) -> None:
    path.write_bytes(good_bytes(path)[:-100])


def cut_in_the_middle(path: Path) -> None:
    data = good_bytes(path)
    footer = int.from_bytes(data[-8:-4], "little") + 8
    path.write_bytes(data[:100] + data[-footer:])


def corrupt_pages(path: Path) -> None:
    data = bytearray(good_bytes(path, compression="zstd"))
    footer = int.from_bytes(data[-8:-4], "little") + 8
    for place in range(4, len(data) - footer, 3):
        data[place] ^= 0xFF
    path.write_bytes(data)


def corrupt_footer(path: Path) -> None:
    data = bytearray(good_bytes(path))
    footer = int.from_bytes(data[-8:-4], "little") + 8
    for place in range(len(data) - footer, len(data) - 8):
        data[place] ^= 0x5A
    path.write_bytes(data)


def footer_claims_too_much(path: Path) -> None:
    data = good_bytes(path)
    path.write_bytes(data[:-8] + (2**31).to_bytes(4, "little") + b"PAR1")


def encrypted(path: Path) -> None:
    path.write_bytes(good_bytes(path)[:-4] + b"PARE")


def bomb(path: Path) -> None:
    """30 million rows in a few hundred kB."""
    rows = 30_000_000
    columns = {
        "event_id": pa.array(np.full(rows, 10, np.int32)),
        "item_id": pa.array(np.zeros(rows, np.int32)),
        "value": pa.array(np.zeros(rows, np.float32)),
    }
    pq.write_table(pa.table(columns), path, row_group_size=rows, compression="zstd")
    assert path.stat().st_size < 400_000


def huge_footer(path: Path) -> None:
    with pq.ParquetWriter(path, good().schema) as writer:
        writer.write_table(good())
        writer.add_key_value_metadata({"x": "y" * (65 * 1024**2)})


def too_many_rows(path: Path) -> None:
    pq.write_table(pa.concat_tables([good(), good()]), path)


def too_many_rows_of_other_events(path: Path) -> None:
    others = good().set_column(0, "event_id", pa.array(np.full(ROWS, 40), pa.int64()))
    pq.write_table(pa.concat_tables([others, good()]), path, row_group_size=ROWS)


def repeated_column(path: Path) -> None:
    table = good()
    pq.write_table(table.append_column("value", table.column("value")), path)


def several_at_once(path: Path) -> None:
    table = pa.table({"event_id": ["a"], "item_id": [1.5], "truth": [1], "x": [2]})
    pq.write_table(table, path)


NESTED = pa.array([[1]] * ROWS)
TEXT = pa.array(["7"] * ROWS)

#: Each file with the problems expected: code, column, count.
BAD: dict[str, tuple[Write, list[tuple[str, str | None, int]]]] = {
    "empty file": (raw(b""), [("not-parquet", None, 1)]),
    "text file": (raw(b"event_id,item_id,value\n1,2,3\n"), [("not-parquet", None, 1)]),
    "magic alone": (raw(b"PAR1"), [("truncated", None, 1)]),
    "magic twice": (raw(b"PAR1PAR1"), [("truncated", None, 1)]),
    "magic and zeros": (raw(b"PAR1" + bytes(100) + b"PAR1"), [("corrupt", None, 1)]),
    "wrong magic": (
        lambda path: path.write_bytes(b"XXXX" + good_bytes(path)[4:]) and None,
        [("not-parquet", None, 1)],
    ),
    "truncated": (truncated, [("truncated", None, 1)]),
    "cut in the middle": (cut_in_the_middle, [("corrupt", None, 1)]),
    "corrupt pages": (corrupt_pages, [("corrupt", None, 1)]),
    "corrupt footer": (corrupt_footer, [("corrupt", None, 1)]),
    "footer claims too much": (footer_claims_too_much, [("truncated", None, 1)]),
    "encrypted": (encrypted, [("encrypted", None, 1)]),
    "huge footer": (huge_footer, [("footer-too-large", None, 1)]),
    "bomb": (bomb, [("too-many-rows", None, 30_000_000 - ROWS)]),
    "too many rows": (too_many_rows, [("too-many-rows", None, ROWS)]),
    "too many rows of other events": (
        too_many_rows_of_other_events,
        [("too-many-rows", None, ROWS), ("unknown-event", "event_id", ROWS)],
    ),
    "no rows": (lambda path: pq.write_table(good().slice(0, 0), path), [("no-rows", None, 1)]),
    "missing column": (
        lambda path: pq.write_table(good().drop(["value"]), path),
        [("missing-column", "value", 1)],
    ),
    "extra column": (
        lambda path: pq.write_table(good().append_column("truth", good().column("value")), path),
        [("extra-column", "truth", 1)],
    ),
    "repeated column": (repeated_column, [("repeated-column", "value", 1)]),
    "other capitals": (
        lambda path: pq.write_table(good().rename_columns(["Event_ID", "item_id", "value"]), path),
        [("missing-column", "event_id", 1), ("extra-column", "Event_ID", 1)],
    ),
    "several at once": (
        several_at_once,
        [
            *(("wrong-type", "event_id", 1), ("wrong-type", "item_id", 1), ("missing-column", "value", 1)),
            *(("extra-column", "truth", 1), ("extra-column", "x", 1)),
        ],
    ),
    "text": (replaced("item_id", TEXT), [("wrong-type", "item_id", 1)]),
    "text as dictionary": (replaced("item_id", TEXT.dictionary_encode()), [("wrong-type", "item_id", 1)]),
    "float": (replaced("item_id", np.arange(ROWS) / 2), [("wrong-type", "item_id", 1)]),
    "whole floats": (replaced("event_id", np.full(ROWS, 10.0)), [("wrong-type", "event_id", 1)]),
    "boolean": (replaced("item_id", np.full(ROWS, fill_value=True)), [("wrong-type", "item_id", 1)]),
    "null type": (replaced("item_id", pa.nulls(ROWS)), [("wrong-type", "item_id", 1)]),
    "decimal": (replaced("item_id", [Decimal(1)] * ROWS), [("wrong-type", "item_id", 1)]),
    "time": (replaced("item_id", pa.array(range(ROWS), pa.timestamp("us"))), [("wrong-type", "item_id", 1)]),
    "duration": (
        replaced("item_id", pa.array(range(ROWS), pa.duration("s"))),
        [("wrong-type", "item_id", 1)],
    ),
    "list": (replaced("item_id", NESTED), [("wrong-type", "item_id", 1)]),
    "list of values": (replaced("value", NESTED), [("wrong-type", "value", 1)]),
    "structure": (replaced("event_id", [{"event_id": 1}] * ROWS), [("wrong-type", "event_id", 1)]),
    "text values": (replaced("value", TEXT), [("wrong-type", "value", 1)]),
    "null event": (some("event_id", None), [("null-value", "event_id", 1)]),
    "null item": (some("item_id", None, None), [("null-value", "item_id", 2)]),
    "all null": (replaced("item_id", pa.nulls(ROWS, pa.int64())), [("null-value", "item_id", ROWS)]),
    "null value": (some("value", None), [("null-value", "value", 1)]),
    "not a number": (some("value", float("nan")), [("non-finite", "value", 1)]),
    "infinities": (some("value", float("inf"), float("-inf")), [("non-finite", "value", 2)]),
    "event before": (some("event_id", 9), [("unknown-event", "event_id", 1)]),
    "event after": (some("event_id", 17, 18), [("unknown-event", "event_id", 2)]),
    "negative event": (some("event_id", -1), [("unknown-event", "event_id", 1)]),
    "huge event": (
        replaced("event_id", np.full(ROWS, 2**64 - 1, np.uint64)),
        [("unknown-event", "event_id", ROWS)],
    ),
    "huge events among good ones": (
        replaced(
            "event_id", np.array([*good().column("event_id").to_pylist()[:-2], 2**63, 2**64 - 1], np.uint64)
        ),
        [("unknown-event", "event_id", 2)],
    ),
    "events of eight bits": (
        replaced("event_id", np.full(ROWS, 127, np.int8)),
        [("unknown-event", "event_id", ROWS)],
    ),
    "no event of the range, no statistics": (
        replaced("event_id", np.full(ROWS, 5), write_statistics=False),
        [("unknown-event", "event_id", ROWS)],
    ),
    "unknown item": (some("item_id", 77), [("unknown-item", "item_id", 1)]),
    "rows of all kinds": (
        lambda path: pq.write_table(
            pa.table(
                {
                    "event_id": pa.array([10, None, 10, 99, 10], pa.int64()),
                    "item_id": pa.array([0, 1, None, 3, 88], pa.int64()),
                    "value": pa.array([float("nan"), 1, 1, 1, 1]),
                }
            ),
            path,
            row_group_size=2,
        ),
        [
            *(("null-value", "event_id", 1), ("non-finite", "value", 1), ("null-value", "item_id", 1)),
            *(("unknown-event", "event_id", 1), ("unknown-item", "item_id", 1)),
        ],
    ),
}


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("job_rows", [1, None], ids=["many jobs", "one job"])
async def test_a_bad_file_is_refused_with_its_problems(
    score: Score, tmp_path: Path, name: str, job_rows: int | None
) -> None:
    write, expected = BAD[name]
    path = tmp_path / "predictions.parquet"
    write(path)
    with pytest.raises(InvalidInput) as raised:
        await score(path, job_rows=job_rows)
    assert raised.value.status == 422
    errors = raised.value.errors
    found = [(error["code"], error["column"], error["count"]) for error in errors]
    assert sorted(found, key=str) == sorted(expected, key=str)
    json.dumps(errors, allow_nan=False)
    assert all(isinstance(error["detail"], str) and str(tmp_path) not in error["detail"] for error in errors)
    assert os.listdir(tmp_path) == [path.name]  # noqa: PTH208 -- names are enough


def test_a_footer_of_very_many_columns_shows_few_problems(tmp_path: Path) -> None:
    path = tmp_path / "p.parquet"
    pq.write_table(pa.table({f"c{number}": pa.array([1]) for number in range(5000)}), path)
    request = PlanRequest(path, toy_task.Toy.card, ROWS)
    plan, problems = make_plan(request)
    assert plan is None
    assert len(problems) == 100
    assert {"event_id", "item_id", "value"} <= {problem.column for problem in problems}


@pytest.mark.asyncio(loop_scope="module")
async def test_examples_show_the_rows_themselves(score: Score, tmp_path: Path) -> None:
    path = tmp_path / "p.parquet"
    some("event_id", -5, -4, -3, -2, -1, 2000, 3000)(path)
    with pytest.raises(InvalidInput) as raised:
        await score(path)
    (error,) = raised.value.errors
    assert error["count"] == 7
    assert error["event_id"] == -5
    values = good().column("value").to_pylist()[-7:]
    assert error["examples"] == [
        {"event_id": event, "item_id": 26 + number, "value": values[number]}
        for number, event in enumerate((-5, -4, -3, -2, -1))
    ]
    assert "10 to 16" in error["detail"]


@pytest.mark.asyncio(loop_scope="module")
async def test_a_file_too_large_for_a_worker_is_a_problem_of_the_file(
    score: Score, make: Make, tmp_path: Path
) -> None:
    """Six million rows in one event, and memory for less."""
    rows = 6_000_000
    numbers = pa.array(np.arange(rows))
    lists = pa.ListArray.from_arrays(pa.array([0, rows], pa.int32()), numbers)
    (tmp_path / "dataset").mkdir()
    pq.write_table(
        pa.table({"event_id": pa.array([10], pa.uint32()), "item_id": lists, "answer": lists}),
        tmp_path / "dataset" / "items.parquet",
    )
    large, events = Dataset(tmp_path / "dataset"), toy_task.EventRange(10, 11)
    truth = await make(tmp_path, of=large, events=events, floors=False)
    path = tmp_path / "p.parquet"
    columns = {"event_id": pa.array(np.full(rows, 10)), "item_id": numbers, "value": numbers}
    write_predictions(pa.table(columns), path)
    with pytest.raises(InvalidInput) as raised:
        await score(path, against=truth, limits=Limits(200 * 1024**2, 60))
    assert [error["code"] for error in raised.value.errors] == ["too-large-to-decode"]


def ignoring(path: Path) -> list[str]:
    """Codes of what a footer shows when columns beyond the task's own are ignored."""
    request = PlanRequest(path, toy_task.Toy.card, ROWS, "ignore")
    return sorted(problem.code for problem in make_plan(request)[1])


@pytest.mark.asyncio(loop_scope="module")
async def test_extra_columns_that_are_ignored_change_nothing(score: Score, tmp_path: Path) -> None:
    pq.write_table(good(), tmp_path / "plain.parquet")
    # Far more than could be decoded.
    texts = pa.array(["a" * 10_000] * ROWS)
    more = good().append_column("lists", pa.array([[1, 2]] * ROWS)).append_column("texts", texts)
    pq.write_table(more, tmp_path / "more.parquet", use_dictionary=False)
    # Out of order, so that they are sorted on disk as well.
    pq.write_table(more.take(np.arange(ROWS)[::-1]), tmp_path / "turned.parquet", row_group_size=2)
    plain, *others = [
        await score(tmp_path / f"{name}.parquet", extra_columns="ignore")
        for name in ("plain", "more", "turned")
    ]
    assert others == [plain] * 2


def test_dotted_column_names_are_not_ignored(tmp_path: Path) -> None:
    pq.write_table(good().append_column("value.part", good()["value"]), tmp_path / "p.parquet")
    assert ignoring(tmp_path / "p.parquet") == ["extra-column"]


def test_very_many_extra_columns_are_too_many(tmp_path: Path) -> None:
    many = {f"c{number}": pa.nulls(ROWS, pa.int8()) for number in range(1000)}
    table = pa.table({**{name: good()[name] for name in good().column_names}, **many})
    pq.write_table(table, tmp_path / "p.parquet")
    assert ignoring(tmp_path / "p.parquet") == ["too-many-columns"]


def test_the_index_of_a_pandas_frame_has_a_hint(tmp_path: Path) -> None:
    import pandas

    path = tmp_path / "predictions.parquet"
    columns = {"event_id": [10, 10, 10], "item_id": [0, 1, 2], "value": [0.5, 0.5, 0.5]}
    pandas.DataFrame(columns, index=[5, 2, 9]).to_parquet(path)
    _, (problem,) = make_plan(PlanRequest(path, toy_task.Toy.card, 10))
    assert (problem.code, problem.column) == ("extra-column", "__index_level_0__")
    assert "to_parquet(..., index=False)" in problem.detail


def test_integers_beyond_64_bits_are_named(tmp_path: Path) -> None:
    import polars

    path = tmp_path / "predictions.parquet"
    polars.DataFrame({"event_id": polars.Series([10], dtype=polars.Int128)}).write_parquet(path)
    plan, (problem,) = make_plan(PlanRequest(path, toy_task.Toy.card, 10))
    assert (plan, problem.code) == (None, "wrong-type")
    assert "more than 64 bits, such as polars' Int128" in problem.detail
