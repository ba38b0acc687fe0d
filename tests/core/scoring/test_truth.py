"""Truth: reproducible versions, atomic imports, and detection of changes."""

from __future__ import annotations

import asyncio
import json
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import toy_task
from tests.waiting import until
from toy_task import SIZES, Make, Toy

from collidium.contracts.tables import flatten
from collidium.contracts.task import EventRange, Reconstruction, Tables, UnusableTruth
from collidium.datasets import Dataset
from collidium.errors import ConfigurationError, ScoringFailed, UnusableDataset
from collidium.files.held import sweep
from collidium.scoring.truth.importing import Origin
from collidium.scoring.truth.tables import LONG_EVENTS, TableReader, TableWriter
from collidium.scoring.truth.versions import MANIFEST, Truth

pytestmark = pytest.mark.asyncio(loop_scope="module")


def resharded(dataset: Dataset, directory: Path) -> Dataset:
    """The same events in other shards, in another order."""
    table = pq.read_table(dataset.directory / "items.parquet")
    folder = directory / "data" / "toy_pu0_items"
    folder.mkdir(parents=True)
    for number, (first, stop) in enumerate([(4, 7), (0, 1), (1, 4)]):
        pq.write_table(
            table.slice(first, stop - first), folder / f"train-{number:05}.parquet", row_group_size=1
        )
    return Dataset(directory)


async def test_the_manifest_describes_the_truth(make: Make, tmp_path: Path) -> None:
    reports: list[tuple[int, ...]] = []
    truth = await make(tmp_path, block_rows=45, progress=lambda *done: reports.append(done))
    assert reports[-1] == (7, 7), "events"
    assert truth.directory == tmp_path / "toy" / truth.version
    assert (truth.task, truth.dataset, truth.revision, truth.scorer_version) == ("toy", "toy_pu0", "abc", "1")
    assert truth.events == toy_task.EVENTS
    assert truth.rows("answers") == sum(SIZES)
    assert truth == Truth.open(truth.directory)
    manifest = json.loads((truth.directory / MANIFEST).read_text())
    assert manifest == json.loads(json.dumps(truth.as_dict()))
    assert manifest["events"] == {"start": 10, "stop": 17}
    assert manifest["created_at"].endswith("Z")
    assert set(manifest["tables"]["answers"]) == {"sha256", "rows", "bytes"}
    truth.verify()
    with TableReader(truth.paths["answers"]) as answers:
        stored = pa.concat_tables(answers.read(block.index) for block in truth.blocks)
    assert stored.column("item_id").to_pylist() == toy_task.items().column("item_id").to_pylist()


async def test_notes_of_the_datasets_shards_are_kept(make: Make, dataset: Dataset, tmp_path: Path) -> None:
    items = pq.read_table(dataset.directory / "items.parquet")
    notes = {"truth.vary": "field=0.99", "truth.odd": b"\xff", "pandas": "{}"}
    (tmp_path / "noted").mkdir()
    pq.write_table(items.replace_schema_metadata(notes), tmp_path / "noted" / "items.parquet")
    truth = await make(tmp_path, of=Dataset(tmp_path / "noted"))
    assert truth.notes == {"vary": "field=0.99", "odd": "\ufffd"}
    assert Truth.open(truth.directory).notes == truth.notes


async def test_blocks_are_of_whole_events_over_the_range(make: Make, tmp_path: Path) -> None:
    truth = await make(tmp_path, block_rows=41)
    spans = [(block.events.start, block.events.stop, block.rows) for block in truth.blocks]
    assert spans == [(10, 11, 20), (11, 14, 38), (14, 16, 41), (16, 17, 33)]
    with TableReader(truth.paths["answers"]) as answers:
        for block in truth.blocks:
            events = np.asarray(answers.read(block.index).column("event_id"))
            assert len(events) == block.rows
            assert all(event in block.events for event in events.tolist())


async def test_an_event_without_rows_has_a_block_of_its_own_if_need_be(make: Make, tmp_path: Path) -> None:
    truth = await make(tmp_path, events=EventRange(12, 13), task=NoBaseline())
    assert [(block.events.start, block.rows) for block in truth.blocks] == [(12, 0)]


async def test_the_floors_are_what_the_baseline_scores(make: Make, tmp_path: Path) -> None:
    truth = await make(tmp_path)
    right = np.mean(np.asarray(toy_task.items().column("value")) == 500.0)
    assert truth.floors == {"accuracy": right, "missing": 0.0}
    assert (await make(tmp_path / "2", task=NoBaseline())).floors == {}


async def test_the_same_input_gives_the_same_version(make: Make, dataset: Dataset, tmp_path: Path) -> None:
    first = await make(tmp_path / "1")
    again = await make(tmp_path / "2", of=resharded(dataset, tmp_path / "dataset"), block_rows=1)
    assert again.version == first.version
    assert len(again.blocks) == 7
    for other in (
        {"origin": Origin("toy_pu0", "abd")},
        {"origin": Origin("toy_pu1", "abc")},
        {"events": EventRange(10, 16)},
        {"task": OtherVersion()},
        {"task": OtherAnswers()},
    ):
        assert (await make(tmp_path / "3", **other)).version != first.version


async def test_importing_again_leaves_what_is_there(make: Make, tmp_path: Path) -> None:
    made = await asyncio.gather(*(make(tmp_path) for _ in range(3)))
    assert len({truth.version for truth in made}) == 1
    assert await make(tmp_path) == made[0]
    assert [path.name for path in (tmp_path / "toy").iterdir()] == [made[0].version]


async def test_missing_events_are_refused_and_leave_nothing(make: Make, tmp_path: Path) -> None:
    with pytest.raises(UnusableDataset, match=r"lacks 4 of the 9 events 12:21, for example 17, 18, 19, 20 "):
        await make(tmp_path, events=EventRange(12, 21))
    assert list((tmp_path / "toy").iterdir()) == []


async def test_a_task_that_cannot_use_the_dataset_leaves_nothing(make: Make, tmp_path: Path) -> None:
    for task, message in [(Refuses(), "items lack"), (WrongType(), "uint32"), (WrongTable(), "rows_of")]:
        with pytest.raises(UnusableDataset, match=message):
            await make(tmp_path, task=task)
    with pytest.raises(ScoringFailed):
        await make(tmp_path, task=toy_task.Broken("raises in score"))
    assert list((tmp_path / "toy").iterdir()) == []


async def test_columns_that_a_task_lacks_are_named(make: Make, tmp_path: Path) -> None:
    for task, message in [
        (LacksColumn(), 'task toy cannot use these tables: Field "pt" does not exist in schema'),
        (BaselineLacksColumn(), 'task toy cannot use these tables: Field "pt" does not exist in schema'),
        (NoList(), "task toy cannot use these tables: .*list_value_length"),
    ]:
        with pytest.raises(UnusableDataset, match=message):
            await make(tmp_path, task=task)
        assert not list(tmp_path.rglob("*.json"))


async def test_events_beyond_32_bits_are_refused(make: Make, tmp_path: Path) -> None:
    with pytest.raises(UnusableDataset, match="have ids below 4294967296"):
        await make(tmp_path, events=EventRange(2**32, 2**32 + 1))


async def test_an_import_that_is_given_up_leaves_nothing_that_counts(make: Make, tmp_path: Path) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def wait(done: int, total: int) -> None:
        begun.set()
        go_on.wait(30)

    importing = asyncio.create_task(make(tmp_path, progress=wait))
    await asyncio.to_thread(begun.wait, 30)
    importing.cancel()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await importing

    def nothing_is_left() -> bool:
        # A thread may still write while its directory is deleted; then the next sweep has it.
        sweep(tmp_path / "toy")
        return list((tmp_path / "toy").iterdir()) == []

    await until(nothing_is_left)


async def test_what_was_changed_or_lost_is_noticed(make: Make, tmp_path: Path) -> None:
    truth = await make(tmp_path)
    path = truth.paths["answers"]
    data = path.read_bytes()
    path.write_bytes(data[:20] + bytes([data[20] ^ 1]) + data[21:])
    with pytest.raises(ConfigurationError, match="import it again"):
        Truth.open(truth.directory).verify()
    path.write_bytes(data + b"x")
    with pytest.raises(ConfigurationError, match="bytes, not"):
        Truth.open(truth.directory)
    path.unlink()
    with pytest.raises(ConfigurationError, match="is incomplete"):
        Truth.open(truth.directory)


async def test_truth_in_another_form_is_not_read(make: Make, tmp_path: Path) -> None:
    truth = await make(tmp_path, task=NoBaseline())
    replace(truth, form="parquet").save()
    with pytest.raises(ConfigurationError, match="form is parquet, not arrow-2: import it again"):
        Truth.open(truth.directory)


#: Tables of one event or two, as tasks may prepare them; what each block holds is stored in another way.
LONG = np.repeat(np.array([7, 9], np.uint32), LONG_EVENTS)
POSITIONS = np.tile(np.arange(LONG_EVENTS), 2)
BLOCKS = [
    {"events": LONG, "place": POSITIONS, "count": POSITIONS % 200, "weight": POSITIONS / 7},
    {
        "events": LONG[::-1][:1],
        "place": np.array([2**40]),
        "count": np.array([-1]),
        "weight": np.array([0.5]),
    },
    {"events": LONG[:0], "place": LONG[:0], "count": LONG[:0], "weight": LONG[:0]},
    {"events": LONG, "place": POSITIONS + 1, "count": POSITIONS * 1000, "weight": -POSITIONS / 7},
]
SCHEMA = pa.schema(
    [
        ("event_id", pa.uint32()),
        ("place", pa.int64()),
        ("count", pa.int32()),
        ("weight", pa.float64()),
        ("primary", pa.bool_()),
        ("name", pa.string()),
    ]
)


def tables_of_blocks() -> list[pa.Table]:
    return [
        pa.table(
            [
                *(block["events"], block["place"].astype(np.int64), block["count"].astype(np.int32)),
                *(block["weight"].astype(np.float64), block["count"] > 3, block["count"].astype(str)),
            ],
            schema=SCHEMA,
        )
        for block in BLOCKS
    ]


async def test_tables_are_read_as_they_were_written(tmp_path: Path) -> None:
    writer = TableWriter(tmp_path / "table.arrow", SCHEMA)
    for table in tables_of_blocks():
        writer.write(table)
    assert writer.finish().rows == 4 * LONG_EVENTS + 1
    with TableReader(tmp_path / "table.arrow") as reader:
        for number, table in enumerate(tables_of_blocks()):
            assert reader.read(number) == table


async def test_events_and_positions_take_no_room(tmp_path: Path) -> None:
    """For hits of long events only the particle is stored, in two bytes."""
    hits = {"event_id": LONG, "hit_id": POSITIONS, "particle": (POSITIONS * 7 % 1000).astype(np.uint32)}
    writer = TableWriter(tmp_path / "hits.arrow", pa.table(hits).schema)
    for _ in range(20):
        writer.write(pa.table(hits))
    assert writer.finish().bytes < 3 * 20 * len(LONG)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"task": "toy"}', "null"])
async def test_a_manifest_that_is_none_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / MANIFEST).write_text(content)
    with pytest.raises(ConfigurationError, match="not a manifest"):
        Truth.open(tmp_path)


# -- tasks that prepare other truth; they are not sent to workers unless they have a baseline ------------


class NoBaseline(Toy):
    def baselines(self) -> dict[str, Reconstruction]:
        return {}


class OtherVersion(NoBaseline):
    version = "2"


class OtherAnswers(NoBaseline):
    def prepare(self, tables: Tables) -> dict[str, pa.Table]:
        answers = super().prepare(tables)["answers"]
        values = np.asarray(answers.column("answer")).copy()
        values[values == values.max()] += 1
        return {"answers": answers.set_column(2, "answer", pa.array(values))}


class Refuses(NoBaseline):
    def prepare(self, tables: Tables) -> dict[str, pa.Table]:
        raise UnusableTruth("items lack what is needed")


class LacksColumn(NoBaseline):
    def prepare(self, tables: Tables) -> dict[str, pa.Table]:
        return {"answers": tables["items"].select(["event_id"]).append_column("x", tables["items"]["pt"])}


class BaselineLacksColumn(Toy):
    def baselines(self) -> dict[str, Reconstruction]:
        return {"pt": lambda tables: pa.table({"event_id": tables["items"].column("pt")})}


class NoList(NoBaseline):
    def prepare(self, tables: Tables) -> dict[str, pa.Table]:
        return {"answers": flatten(tables["items"], ["event_id"])}


class WrongType(NoBaseline):
    def prepare(self, tables: Tables) -> dict[str, pa.Table]:
        answers = super().prepare(tables)["answers"]
        return {"answers": answers.set_column(0, "event_id", answers.column("event_id").cast(pa.int64()))}


class WrongTable(NoBaseline):
    def prepare(self, tables: Tables) -> dict[str, pa.Table]:
        return {"items": super().prepare(tables)["answers"]}
