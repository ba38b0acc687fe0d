"""A server with the runner local, from the order to the dataset on its hub, with nothing but settings."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from huggingface_hub import HfApi
from tests.waiting import eventually

from collidium.client import Client
from collidium.testing.plugin import StartServer
from collidium.testing.server import ServerProcess
from collidium_runners.local.records import FolderRecord

PIPELINE = """\
#!/usr/bin/env python
import argparse, pathlib, time
import pyarrow as pa
import pyarrow.parquet as pq

parser = argparse.ArgumentParser()
for name in ("--first-event", "--events", "--seed"):
    parser.add_argument(name, type=int)
for name in ("--wait-for", "--output"):
    parser.add_argument(name, type=pathlib.Path)
order = parser.parse_args()
while not order.wait_for.exists():
    time.sleep(0.02)
events = range(order.first_event, order.first_event + order.events)
table = pa.table({"event_id": pa.array(events, pa.uint32()), "px": [[order.seed + 0.5] for _ in events]})
pq.write_table(table, order.output / "particles.parquet")
"""


@pytest.fixture
def go(tmp_path: Path) -> Path:
    """The pipeline waits for this file."""
    return tmp_path / "go"


@pytest.fixture
def local(tmp_path: Path, go: Path) -> dict[str, str]:
    """Settings that compute here."""
    program = tmp_path / "pipeline"
    program.write_text(PIPELINE)
    program.chmod(0o755)
    return {
        "PLATFORM_RUN_MODE": "real",
        "PLATFORM_RUNNER": "local",
        "PLATFORM_LEASE_SECONDS": "1",
        "PLATFORM_PIPELINE_COMMAND": f"{program} --events {{events}} --first-event {{first_event}} "
        f"--seed {{seed}} --wait-for {go} --output {{output}}",
    }


def test_an_order_becomes_a_dataset_on_the_local_hub(
    start_server: StartServer, local: dict[str, str], go: Path, tmp_path: Path
) -> None:
    """The server is killed and started again while the job runs."""
    server = start_server(local)
    token = server.add_user("ada")
    with Client(server.base_url, token) as ada:
        request_id = ada.simulate(channel="ttbar", events=3, pileup=0, seed=7).request_id
        eventually(lambda: ada.request(request_id).state == "running")
    (folder,) = (server.data_dir / "local-jobs" / "processes").iterdir()
    started = FolderRecord(folder).started
    server.kill()
    server.start()
    assert started is not None
    assert started.shepherd.is_alive
    go.touch()
    with Client(server.base_url, token) as ada:
        request = ada.wait(request_id, timeout=60)
        assert (request.state, request.output_is_mock) == ("completed", False)
    repo = (request.output_hub_repo or "").removeprefix(f"{server.base_url}/hub/datasets/")
    assert repo.startswith("ada/ttbar-pu0-3ev-seed7-")
    hub = HfApi(endpoint=f"{server.base_url}/hub", token=token)
    shard = "data/ttbar_pu0_particles/train-00000-of-00001.parquet"
    found = hub.hf_hub_download(repo, shard, repo_type="dataset", local_dir=tmp_path / "got")
    table = pq.read_table(found)
    assert table["event_id"].to_pylist() == [0, 1, 2]
    assert table["px"].to_pylist() == [[7.5]] * 3


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_missing_pipeline_is_reported_at_start(local: dict[str, str], workers: str, tmp_path: Path) -> None:
    command = {"PLATFORM_PIPELINE_COMMAND": "no-such-program {output}", "PLATFORM_WORKERS": workers}
    server = ServerProcess(tmp_path / "server", env=local | command)
    with pytest.raises(RuntimeError, match="there is no program no-such-program on this machine"):
        server.start()


def test_a_server_that_follows_nothing_needs_no_pipeline(local: dict[str, str], tmp_path: Path) -> None:
    command = {"PLATFORM_PIPELINE_COMMAND": "no-such-program {output}", "PLATFORM_FOLLOW_REQUESTS": "false"}
    with ServerProcess(tmp_path / "server", env=local | command) as server:
        worker = server.run("worker")
    assert worker.returncode == 1
    assert "PLATFORM_PIPELINE_COMMAND: there is no program no-such-program" in worker.stderr
    assert "Traceback" not in worker.stderr
