"""Plugin loading, with real distributions; each hook is exercised by the example that documents it."""

from __future__ import annotations

import json
import logging
import signal
import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.distributions import install
from tests.documents import ROOT, code_blocks
from tests.tui.consoles import show, shows, signed_in
from tests.waiting import eventually

from collidium import plugins, settings
from collidium.cli import root
from collidium.contracts.runner import Job
from collidium.errors import ConfigurationError
from collidium.order import Order
from collidium.pipelines.simulating import RunOptions, simulate
from collidium.plugins import Plugins
from collidium.settings import Settings
from collidium.testing.conformance import (
    check_identity_provider,
    check_runner,
    check_storage,
)
from collidium.testing.processes import Process
from collidium.testing.server import COLLIDIUM, ServerProcess, run_command, start_process

Install = Callable[..., None]

TASK = """
from dataclasses import replace
from collidium.hookspecs import hookimpl
from collidium_tasks.tracking import TrackingTask

class {name}(TrackingTask):
    card = replace(TrackingTask.card, name="{name}")

@hookimpl
def collidium_tasks():
    return [{name}()]
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory for installed distributions, on the path of this process."""
    path = tmp_path / "site"
    path.mkdir()
    monkeypatch.syspath_prepend(str(path))
    return path


@pytest.fixture
def installed(site: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Installs a distribution: ``installed("name", {"module": source}, {"entry point": "module"})``."""

    def put(
        distribution: str,
        modules: dict[str, str],
        points: dict[str, str] | None = None,
        commands: dict[str, str] | None = None,
    ) -> None:
        install(site, distribution, modules, points, commands)
        for module in modules:
            monkeypatch.delitem(sys.modules, module, raising=False)

    return put


@pytest.fixture
def configured(tmp_path: Path) -> Settings:
    return settings.load(data_dir=tmp_path / "data")


def states(loaded: Plugins) -> dict[str, str]:
    return {name: record.state for name, record in loaded.records.items()}


# -- loading -------------------------------------------------------------------------------------------


def test_everything_built_in_loads_through_entry_points() -> None:
    own = [point.name for point in entry_points(group="collidium") if plugins.is_own(point)]
    loaded = plugins.load()
    assert {states(loaded)[name] for name in own} == {"loaded"}
    assert {"tracking", "local_hub", "hub_identity", "storage_local", "executor_processes"} <= set(own)
    assert loaded.failures == []


def test_a_plugin_is_recorded_with_its_distribution_and_version(installed: Install) -> None:
    installed("third-party", {"third_party_tasks": TASK.format(name="strange")})
    record = plugins.load().records["third_party_tasks"]
    assert (record.distribution, record.version, record.state) == ("third-party", "1.0", "loaded")


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("import no_such_module_anywhere", "ModuleNotFoundError: No module named 'no_such_module_anywhere'"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("def broken(:", "SyntaxError"),
        ("raise SystemExit('bye')", "SystemExit: bye"),
        (
            "from collidium.hookspecs import hookimpl\n@hookimpl\ndef collidium_tasks(unknown): return []",
            "unknown",
        ),
        (
            "from collidium.hookspecs import hookimpl\n@hookimpl\ndef collidium_tascks(): return []",
            "collidium_tascks",
        ),
        (
            "from collidium.hookspecs import hookimpl\n@hookimpl(wrapper=True)\n"
            "def collidium_tasks():\n    return (yield)",
            "collidium_tasks is a hook wrapper; write a plain @hookimpl that returns a list",
        ),
        (
            "from collidium.hookspecs import hookimpl\n@hookimpl(hookwrapper=True)\n"
            "def collidium_tasks():\n    yield",
            "collidium_tasks is a hook wrapper; write a plain @hookimpl that returns a list",
        ),
    ],
    ids=[
        *("import", "exception", "syntax", "exit", "unknown argument", "unknown hook"),
        *("wrapper", "old wrapper"),
    ],
)
def test_a_broken_plugin_is_recorded_and_stops_no_other(
    installed: Install, caplog: pytest.LogCaptureFixture, source: str, error: str
) -> None:
    installed("broken-plugin", {"broken_plugin": source})
    installed("sound-plugin", {"sound_plugin": TASK.format(name="sound")})
    loaded = plugins.load()
    record = loaded.records["broken_plugin"]
    assert record.state == "failed"
    assert error in (record.error or "")
    assert [line for line in loaded.failures if "broken_plugin" in line and "broken-plugin" in line]
    assert "sound" in loaded.tasks().things
    assert "tracking" in loaded.tasks().things
    assert any(logged.levelno == logging.ERROR for logged in caplog.records)


@pytest.mark.parametrize(
    "body",
    ["raise RuntimeError('no licence')", "return None", "return [object()]", "return 7"],
    ids=["raises", "none", "no card", "no list"],
)
def test_a_hook_that_fails_is_its_plugins_failure_alone(installed: Install, body: str) -> None:
    source = f"from collidium.hookspecs import hookimpl\n@hookimpl\ndef collidium_tasks():\n    {body}\n"
    installed("failing", {"failing_tasks": source})
    loaded = plugins.load()
    assert states(loaded)["failing_tasks"] == "loaded"
    assert "tracking" in loaded.tasks().things
    assert states(loaded)["failing_tasks"] == "failed"
    assert "collidium_tasks" in (loaded.records["failing_tasks"].error or "")


#: What a plugin may raise beyond ordinary exceptions, and how it is recorded.
RAISED = {
    "raise BaseException('no licence')": "BaseException: no licence",
    "raise KeyboardInterrupt": "KeyboardInterrupt: ",
    "raise GeneratorExit": "GeneratorExit: ",
    # No `raise` statement raises it.
    "(_ for _ in ()).throw(KeyboardInterrupt)": "KeyboardInterrupt: ",
    "raise BaseExceptionGroup('two', [SystemExit(), ValueError()])": "BaseExceptionGroup: two (2 sub-",
    "class Mute(Exception):\n        def __str__(self): raise SystemExit\n    raise Mute": "Mute: (it has no",
}


@pytest.mark.parametrize(("raised", "recorded"), RAISED.items())
@pytest.mark.parametrize("when", ["import", "hook"])
def test_whatever_a_plugin_raises_is_its_failure(
    installed: Install, when: str, raised: str, recorded: str
) -> None:
    hook = "from collidium.hookspecs import hookimpl\n@hookimpl\ndef collidium_tasks():"
    installed("hostile", {"hostile": f"{hook if when == 'hook' else 'if True:'}\n    {raised}\n"})
    loaded = plugins.load()
    assert "tracking" in loaded.tasks().things
    (failure,) = loaded.failures
    assert recorded in failure


def test_ctrl_c_while_a_plugin_loads_is_no_failure_of_it(installed: Install) -> None:
    installed("slow", {"slow": "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nwhile True: pass\n"})
    with pytest.raises(KeyboardInterrupt):
        plugins.load()


#: Waits for a signal, and handles it as a plugin may.
WAITING = """
import time
from pathlib import Path
try:
    Path({ready!r}).touch()
    time.sleep(60)
except KeyboardInterrupt:
    {then}
"""


@pytest.mark.parametrize("then", ["raise", "raise KeyboardInterrupt('mine')"])
def test_ctrl_c_ends_a_command_while_a_plugin_loads(site: Path, tmp_path: Path, then: str) -> None:
    ready = tmp_path / "ready"
    install(site, "waiting", {"waiting": WAITING.format(ready=str(ready), then=then)})
    process = start_list(site, tmp_path)
    eventually(ready.exists)
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 130
    assert (tmp_path / "err").read_text().strip() == "Interrupted."


@pytest.mark.parametrize("raised", ["raise KeyboardInterrupt", "(_ for _ in ()).throw(KeyboardInterrupt)"])
def test_an_interrupt_without_a_signal_ends_no_command(site: Path, tmp_path: Path, raised: str) -> None:
    install(site, "hostile", {"hostile": raised})
    process = start_list(site, tmp_path)
    assert process.wait(60) == 0, (tmp_path / "err").read_text()
    errors = {one["name"]: one["error"] for one in json.loads((tmp_path / "out").read_text())["plugins"]}
    assert errors["hostile"] == "KeyboardInterrupt: "


def start_list(site: Path, directory: Path) -> Process:
    """Start ``collidium plugin list`` with the plugins of ``site``."""
    command = [*COLLIDIUM, "plugin", "list", "--json"]
    environment = {"PYTHONPATH": str(site), "PLATFORM_DATA_DIR": str(directory / "data")}
    with (directory / "out").open("wb") as output, (directory / "err").open("wb") as errors:
        return start_process(command, environment, directory, output, errors)


def test_the_handler_of_ctrl_c_is_the_callers_again(installed: Install) -> None:
    installed("sound-plugin", {"sound_plugin": TASK.format(name="sound")})
    before = signal.getsignal(signal.SIGINT)
    plugins.load()
    assert signal.getsignal(signal.SIGINT) is before


def test_a_blocked_plugin_is_not_even_imported(installed: Install) -> None:
    installed("blocked-plugin", {"blocked_plugin": "raise SystemExit('imported')"})
    loaded = plugins.load(blocked=["blocked_plugin", "tracking"])
    assert states(loaded)["blocked_plugin"] == states(loaded)["tracking"] == "blocked"
    assert "tracking" not in loaded.tasks().things
    assert loaded.failures == []


TWINS = TASK.format(name="twin").replace("[twin()]", "[twin(), twin()]")


@pytest.mark.parametrize(
    ("source", "points", "named"),
    [
        (TASK.format(name="usurped"), {"tracking": "usurper"}, ("tracking", "usurper", "collidium")),
        (TASK.format(name="tracking"), None, ("'usurper'", "plugin 'tracking'")),
        (TWINS, None, ("twin", "usurper")),
    ],
    ids=["plugin", "task", "twice in one plugin"],
)
def test_the_first_of_two_plugins_with_one_name_is_kept(
    installed: Install, source: str, points: dict[str, str] | None, named: tuple[str, ...]
) -> None:
    installed("usurper", {"usurper": source}, points)
    loaded = plugins.load()
    for _ in range(2):  # loading again does not report it twice
        assert loaded.tasks().origins["tracking"] == "tracking"
    assert loaded.records["tracking"].distribution == "collidium"
    assert "usurped" not in loaded.tasks().things
    (clash,) = loaded.failures
    assert all(name in clash for name in named), clash


def test_an_unknown_name_lists_the_known_ones(installed: Install) -> None:
    with pytest.raises(
        ConfigurationError, match=r"no task named 'jetz' is installed \(there are: .*tracking"
    ):
        plugins.load().tasks().get("jetz")


@pytest.mark.parametrize(
    ("hook", "kind", "variable", "there"),
    [
        ("storages", "storage", "PLATFORM_STORAGE", "local"),
        ("executors", "executor", "PLATFORM_EXECUTOR", "processes"),
        ("identity_providers", "identity provider", "PLATFORM_IDENTITY", "hub"),
        ("runners", "runner", "PLATFORM_RUNNER", "mock"),
    ],
)
def test_an_unknown_choice_names_its_setting_and_the_choices(
    installed: Install, configured: Settings, hook: str, kind: str, variable: str, there: str
) -> None:
    installed("cloud-plugin", {"cloud_plugin": "import no_such_cloud"})
    expected = (
        rf"{variable}: no {kind} named 'cloud' is installed \(there are: .*\b{there}\b.*\); "
        r"plugin 'cloud_plugin' of cloud-plugin: .*No module named 'no_such_cloud'"
    )
    with pytest.raises(ConfigurationError, match=expected):
        getattr(plugins.load(), hook)(configured).get("cloud")


# -- hooks: each by the example in docs/plugins.md -----------------------------------------------------


@pytest.fixture
def documented(installed: Install) -> Callable[..., Plugins]:
    """Installs the example of a hook and loads it."""

    def load(hook: str, *, commands: dict[str, str] | None = None) -> Plugins:
        (example,) = [
            block.code
            for block in code_blocks(ROOT / "docs/plugins.md")
            if block.section == hook and block.language == "python"
        ]
        installed("documented", {f"documented_{hook}": example}, commands=commands)
        loaded = plugins.load()
        assert loaded.failures == []
        return loaded

    return load


Documented = Callable[..., Plugins]


def test_hook_collidium_tasks(documented: Documented) -> None:
    task = documented("collidium_tasks").tasks().get("tracking_muons")
    assert task.card.dataset == "single_muon_pu0"


async def test_hook_collidium_runners(documented: Documented, configured: Settings, tmp_path: Path) -> None:
    loaded = documented("collidium_runners")
    runner, another = (loaded.runners(configured).get("instant") for _ in range(2))
    handle = await runner.submit(Job("r1", Order("ttbar", 10, 0), node_seconds=1200))
    assert (await runner.poll(handle)).node_hours is None
    await check_runner(runner, tmp_path, another=lambda: another, interval=0)


async def test_hook_collidium_storages(documented: Documented, configured: Settings, tmp_path: Path) -> None:
    (configured.data_dir / "shared").mkdir(parents=True)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    loaded = documented("collidium_storages")
    elsewhere = configured.model_copy(update={"data_dir": configured.data_dir / "elsewhere"})
    await check_storage(
        loaded.storages(configured).get("shared_folder"),
        scratch,
        unreachable=loaded.storages(elsewhere).get("shared_folder"),
    )


async def test_hook_collidium_identity_providers(documented: Documented, configured: Settings) -> None:
    loaded = documented("collidium_identity_providers")
    configured.data_dir.mkdir()
    digest = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"  # of "secret"
    (configured.data_dir / "tokens").write_text(f"anna {digest}\n")
    elsewhere = configured.model_copy(update={"data_dir": configured.data_dir / "elsewhere"})
    await check_identity_provider(
        loaded.identity_providers(configured).get("token_file"),
        "secret",
        "anna",
        unreachable=loaded.identity_providers(elsewhere).get("token_file"),
    )


async def test_hook_collidium_executors(documented: Documented, configured: Settings) -> None:
    from collidium.contracts.executor import Limits

    executor = documented("collidium_executors").executors(configured).get("in_place")
    results = executor.map(str, [1, 2], Limits(memory_bytes=1, seconds=1))
    assert [result async for result in results] == ["1", "2"]


def test_hook_collidium_blueprints(documented: Documented, site: Path, tmp_path: Path) -> None:
    documented("collidium_blueprints")
    with ServerProcess(tmp_path / "server", env={"PYTHONPATH": str(site)}) as server:
        answer = httpx.get(f"{server.base_url}/greeting/", trust_env=False)
    assert answer.json() == {"greeting": "Welcome to the experiment."}


def test_hook_collidium_baselines(documented: Documented) -> None:
    baseline = documented("collidium_baselines").baselines().get("tracking/one_track")
    hits = pa.table({"event_id": [3, 4], "hit_id": [[0, 1], [0]]})
    assert baseline.reconstruct({"tracker_hits": hits}).column("track_id").to_pylist() == [3, 3, 4]


def test_hook_collidium_pipelines(documented: Documented, tmp_path: Path) -> None:
    pipelines = documented("collidium_pipelines").pipelines()
    made = simulate(
        Order("anything", 3, 0),
        tmp_path / "out",
        RunOptions(pipeline="pairs"),
        get=pipelines.get,
        report=lambda _: None,
        note=lambda _: None,
        first_event=5,
    )
    (file,) = made.tables["particles"]
    assert pq.read_table(made.directory / file).column("event_id").to_pylist() == [5, 6, 7]


def test_hook_collidium_commands(
    documented: Documented, site: Path, isolated_environment: dict[str, str], tmp_path: Path
) -> None:
    documented("collidium_commands", commands={"greet": "documented_collidium_commands"})
    environment = isolated_environment | {"PYTHONPATH": str(site)}
    done = run_command(["greet", "Anna"], environment, tmp_path)
    assert (done.returncode, done.stdout) == (0, "Welcome, Anna.\n"), done.stderr
    shown = run_command(["--help"], environment, tmp_path).stdout
    assert "greet From documented." in " ".join(shown.split())


async def test_hook_collidium_screens(documented: Documented, tmp_path: Path) -> None:
    documented("collidium_screens")
    with ServerProcess(tmp_path / "server", env={"ADMIN_TOKEN": "of-the-console"}) as server:
        async with signed_in(server, plugin_screens=root.screens) as pilot:
            await shows(pilot, "9Score")
            await show(pilot, "Scorers")
            await shows(pilot, "9Scorers")
            await shows(pilot, "tracking_latency", "scorers")


@pytest.mark.parametrize("hook", ["collidium_submission_scored", "collidium_request_finished"])
def test_an_observer_that_fails_is_logged_and_changes_nothing(
    installed: Install, caplog: pytest.LogCaptureFixture, hook: str
) -> None:
    argument = hook.split("_")[1]
    source = f"from collidium.hookspecs import hookimpl\n@hookimpl\ndef {hook}({argument}):\n    1 / 0\n"
    installed("failing", {"failing_observer": source})
    loaded = plugins.load()
    loaded.announce(hook, **{argument: {}})
    loaded.observers.finish(20)
    assert "failing_observer" in caplog.text


def test_hook_collidium_submission_scored(
    documented: Documented, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCORES_FILE", str(tmp_path / "scores"))
    submission: dict[str, Any] = {"submission_id": "s1", "scores": {"fake_rate": 0.5}}
    loaded = documented("collidium_submission_scored")
    loaded.announce("collidium_submission_scored", submission=submission)
    loaded.observers.finish(20)
    assert json.loads((tmp_path / "scores").read_text()) == submission


def test_hook_collidium_request_finished(
    documented: Documented, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REQUESTS_FILE", str(tmp_path / "requests"))
    request = {"request_id": "r1", "state": "completed"}
    loaded = documented("collidium_request_finished")
    loaded.announce("collidium_request_finished", request=request)
    loaded.observers.finish(20)
    assert (tmp_path / "requests").read_text() == "r1 completed\n"
