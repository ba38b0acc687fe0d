"""One event for the display: Arrow next to JSON, in bytes and in the time until a program has the numbers.

    python perf/event_display_data.py            synthetic events of 120,000 hits
    python perf/event_display_data.py --quick    a smoke: 2,000 hits

Both are made of the same row of the same file and hold the same columns; JSON is an object of lists, as
compact as it can be. Reading means: Arrow to numpy arrays, JSON to lists by Python's own parser. The server
is a process of its own with its hub, asked over loopback: it reads the hub by ranges, and later answers from
memory. Medians; the events are synthetic.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import httpx
import pyarrow as pa

from collidium.datasets.writing import write_dataset
from collidium.event_display import tables as stream
from collidium.event_display.tables import shown
from collidium.hub import client
from collidium.testing.server import ServerProcess
from collidium.testing.synthetic import SyntheticEvents

CONFIG = "synthetic_pu200"


def milliseconds(call: Callable[[], object], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return statistics.median(times) * 1000


def as_json(tables: dict[str, pa.Table]) -> bytes:
    lists = {
        name: {column: table.column(column).to_pylist() for column in table.column_names}
        for name, table in tables.items()
    }
    return json.dumps(lists, separators=(",", ":")).encode()


def arrays(content: bytes) -> object:
    return [
        table.column(column).to_numpy(zero_copy_only=False)
        for table in stream.read(content).values()
        for column in table.column_names
    ]


def compare(made: dict[str, pa.Table], repeats: int) -> None:
    tables = {name: shown(name, table.slice(0, 1)) for name, table in made.items()}
    arrow, text = stream.write(tables, {}), as_json(tables)
    print(f"{'':18}{'arrow':>12}{'JSON':>12}{'JSON / arrow':>14}")
    rows = {
        "MB": (len(arrow) / 1e6, len(text) / 1e6),
        "made in ms": (
            milliseconds(lambda: stream.write(tables, {}), repeats),
            milliseconds(lambda: as_json(tables), repeats),
        ),
        "read in ms": (
            milliseconds(lambda: arrays(arrow), repeats),
            milliseconds(lambda: json.loads(text), repeats),
        ),
    }
    for name, (one, other) in rows.items():
        print(f"{name:18}{one:12.2f}{other:12.2f}{other / one:14.1f}")


def serve(made: dict[str, pa.Table], directory: Path, repeats: int) -> None:
    write_dataset(directory / "events", CONFIG, [made], events_per_shard=10)
    (directory / "events" / "README.md").write_text("---\ntags: [collidium]\n---\n")
    client.prepare()
    from huggingface_hub import HfApi

    with ServerProcess(directory / "server") as server:
        api = HfApi(endpoint=f"{server.base_url}/hub", token=server.add_user("perf"))
        repo = api.create_repo("perf/events", repo_type="dataset").repo_id
        api.upload_folder(repo_id=repo, repo_type="dataset", folder_path=str(directory / "events"))
        with closing(httpx.Client(base_url=server.base_url, timeout=60, trust_env=False)) as http:
            ids = made["tracker_hits"].column("event_id").to_pylist()

            def ask(event_id: int) -> int:
                address = f"/v1/datasets/{CONFIG}/events/{event_id}"
                return len(http.get(address, params={"repo": repo}).raise_for_status().content)

            first = milliseconds(lambda: ask(ids[0]), 1)
            others = statistics.median(milliseconds(lambda e=e: ask(e), 1) for e in ids[1:])
            kept = milliseconds(lambda: ask(ids[0]), repeats)
            print(f"server, first event (starts a worker)  {first:9.1f} ms")
            print(f"server, another event of the hub       {others:9.1f} ms")
            print(f"server, an event it has in memory      {kept:9.1f} ms ({ask(ids[0]) / 1e6:.2f} MB)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a smoke: nothing is measured")
    quick = parser.parse_args().quick
    hits, events, repeats = (2_000, 2, 1) if quick else (120_000, 6, 7)
    made = SyntheticEvents(hits=hits).tables(range(events))
    print(f"{hits:,} hits")
    compare(made, repeats)
    with tempfile.TemporaryDirectory() as scratch:
        serve(made, Path(scratch), repeats)


if __name__ == "__main__":
    main()
