"""Leaderboards whose truth everybody can read are for practice, and pay where the operator says so."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from collidium.client import PUBLIC_TRUTH
from collidium.demo import EVENTS_DIRECTORY
from collidium.testing.server import ServerProcess

from .conftest import SUBMIT, StartServer, import_truth, ok, parquet, signed_in


@pytest.mark.parametrize(
    ("settings", "pays"),
    [({}, True), ({"PLATFORM_REWARDS_ON_PUBLIC_TRUTH": "false"}, False)],
    ids=["mock mode", "not paid"],
)
def test_public_truth_is_practice_and_paid_by_choice(
    start_platform: StartServer, oracle: pa.Table, settings: dict[str, str], pays: bool
) -> None:
    server = start_platform(settings)
    import_truth(server)
    with signed_in(server, "ada") as client:
        assert ok(client.get("/v1/benchmark/tracking"))["practice"] == PUBLIC_TRUTH
        receipt = ok(client.post(SUBMIT, content=parquet(oracle)))
        assert (receipt["practice"], receipt["credits_earned"] > 0) == (PUBLIC_TRUTH, pays)
        assert PUBLIC_TRUTH in client.get("/leaderboard/tracking").text
    assert PUBLIC_TRUTH in server.run("tasks", "tracking").stdout


def test_copied_events_of_the_package_are_known(fresh_platform: ServerProcess, tmp_path: Path) -> None:
    """By their public columns, whatever their ids and truth; other events are not known."""
    for name, shift in (("copied", 0), ("other", 5)):
        directory = tmp_path / name
        directory.mkdir()
        for table in ("tracker_hits", "particles"):
            read = pq.read_table(EVENTS_DIRECTORY / f"{table}.parquet")
            ids = pa.array([event + 700 for event in read["event_id"].to_pylist()], pa.uint32())
            read = read.set_column(read.column_names.index("event_id"), "event_id", ids)
            if table == "tracker_hits":
                for column, by in (("particle_id", 1), ("x", shift)):
                    moved = [[value + by for value in event] for event in read[column].to_pylist()]
                    values = pa.array(moved, read[column].type)
                    read = read.set_column(read.column_names.index(column), column, values)
            pq.write_table(read, directory / f"{table}.parquet")
        words = ("--from", str(directory), "--config", "ttbar_pu0", "--events", "700:705")
        done = fresh_platform.run("truth", "import", "tracking", *words)
        assert done.returncode == 0, done.stderr
        with signed_in(fresh_platform, f"user{name}") as client:
            practice = ok(client.get("/v1/benchmark/tracking"))["practice"]
        assert practice == (PUBLIC_TRUTH if name == "copied" else None)
