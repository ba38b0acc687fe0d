"""Everything that installed plugins bring keeps its contract, by the suite that plugin authors run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.hub import HubServer, hub
from tests.tasks.jets.events import tables as jets_by_hand

from collidium import database, plugins, settings
from collidium.accounts import sso
from collidium.contracts.executor import Executor
from collidium.contracts.storage import Storage
from collidium.contracts.task import Task
from collidium.demo import EVENTS_DIRECTORY
from collidium.physics.constants import ECAL_CODE
from collidium.plugins import Provided
from collidium.settings import Settings
from collidium.testing.conformance import (
    check_executor,
    check_identity_provider,
    check_runner,
    check_storage,
    check_task,
)

__all__ = ["hub"]

INSTALLED = plugins.load()
#: Tables that the five events lack.
MADE_UP = {
    "channels": pa.table(
        {
            "event_id": pa.array(range(5), pa.uint32()),
            "channel": [["ttbar"], ["zprime"], ["zee"], ["susy_gmsb"], ["zmumu"]],
        }
    ),
    "jets": jets_by_hand(first=0)["jets"],
}
#: Only for their names; the things tested are made with settings of the test.
DEFAULTS = settings.load(data_dir=Path("/nonexistent"))


def named(provided: Provided[object]) -> list[str]:
    return sorted(provided.things)


@pytest.fixture
def configured(tmp_path: Path) -> Settings:
    return settings.load(data_dir=tmp_path / "data")


def test_no_installed_plugin_is_broken() -> None:
    assert INSTALLED.failures == []


def test_loading_tasks_imports_nothing_of_their_baselines() -> None:
    program = (
        "import sys\nfrom collidium import plugins\nplugins.load().tasks()\n"
        "print(*({'sklearn', 'scipy', 'acts', 'pythia8mc', 'fastjet', 'pandas'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_what_the_platform_ships_is_there_to_be_tested() -> None:
    """A plugin that brings nothing would leave nothing to test below."""
    for task in ("tracking", "tracking_small", "tracking_latency"):
        assert INSTALLED.tasks().origins.get(task) == task
    assert INSTALLED.storages(DEFAULTS).origins.get("local") == "storage_local"
    assert INSTALLED.executors(DEFAULTS).origins.get("processes") == "executor_processes"
    assert INSTALLED.identity_providers(DEFAULTS).origins.get("hub") == "hub_identity"


@pytest.mark.parametrize("name", named(INSTALLED.tasks()))
def test_tasks(name: str) -> None:
    task: Task = INSTALLED.tasks().get(name)
    check_task(task, {table: table_of(table) for table in {*task.card.truth_sources, *task.card.inputs}})


def table_of(name: str) -> pa.Table:
    """A table of the five events that come with the platform; what it lacks is made up."""
    path = EVENTS_DIRECTORY / f"{name}.parquet"
    if not path.exists():
        return MADE_UP[name]
    table = pq.read_table(path)
    if name == "calo_hits":  # the five events do not say in which part of the calorimeters
        cells = [[ECAL_CODE + 1] * len(deposits) for deposits in table["x"]]
        table = table.append_column("detector", pa.array(cells, pa.list_(pa.uint8())))
    return table


@pytest.mark.parametrize("name", named(INSTALLED.storages(DEFAULTS)))
async def test_storages(name: str, configured: Settings, tmp_path: Path) -> None:
    storage: Storage = INSTALLED.storages(configured).get(name)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    await check_storage(storage, scratch)


async def test_the_hub_storage(hub: HubServer, unused_tcp_port: int, tmp_path: Path) -> None:
    """It is there for those who name a repository for it."""
    repository = {"storage_hub_repo": "anna/files", "storage_hub_token": hub.token("anna")}
    storages = [
        INSTALLED.storages(settings.load(hub_url=url, **repository)).get("hub")
        for url in (hub.url, f"http://127.0.0.1:{unused_tcp_port}")
    ]
    await check_storage(storages[0], tmp_path, unreachable=storages[1])


@pytest.mark.parametrize("name", named(INSTALLED.executors(DEFAULTS)))
async def test_executors(name: str, configured: Settings) -> None:
    executor: Executor = INSTALLED.executors(configured).get(name)
    await check_executor(executor)


async def test_the_mock_runner(configured: Settings, tmp_path: Path) -> None:
    """The others need a batch system or an engine: their own tests check them there."""
    runner, another = (INSTALLED.runners(configured).get("mock") for _ in range(2))
    await check_runner(runner, tmp_path, another=lambda: another, interval=0.05)


async def test_the_hub_identity(hub: HubServer, unused_tcp_port: int) -> None:
    reachable = settings.load(hub_url=hub.url)
    unreachable = settings.load(hub_url=f"http://127.0.0.1:{unused_tcp_port}")
    await check_identity_provider(
        INSTALLED.identity_providers(reachable).get("hub"),
        hub.token("anna"),
        "anna",
        unreachable=INSTALLED.identity_providers(unreachable).get("hub"),
    )


async def test_the_single_sign_on_identity(migrated_database_url: str) -> None:
    """It asks the platform's own database, so there is none to be unreachable."""
    async with database.connected(migrated_database_url):
        name = await sso.recognise("https://sso.example.org", "1", "anna", [])
        token, _ = await sso.issue(name)
        chosen = DEFAULTS.model_copy(update={"oidc_issuer": "https://sso.example.org"})
        await check_identity_provider(INSTALLED.identity_providers(chosen).get("oidc"), token, name)
