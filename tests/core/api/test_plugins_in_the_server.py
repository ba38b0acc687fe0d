"""Plugins of strangers in a running server: what they bring works, what is wrong with them stops nobody."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pyarrow as pa
from tests.distributions import install
from tests.waiting import eventually

from collidium.testing.plugin import StartServer
from collidium.testing.server import ServerProcess

from .conftest import import_truth, parquet, signed_in

HOOK = """
from quart import Blueprint
from collidium.hookspecs import hookimpl

@hookimpl
def collidium_blueprints(settings):
    return [{blueprint}]
"""

GREETING = """
import os
from quart import Blueprint
from collidium.hookspecs import hookimpl

greeting = Blueprint("greeting", __name__, url_prefix="/greeting")

@greeting.get("/")
async def greet():
    return {"hello": "world"}

@hookimpl
def collidium_blueprints(settings):
    # Once per process: the second time the file is there.
    os.close(os.open(settings.data_dir / f"greeting-{os.getpid()}", os.O_CREAT | os.O_EXCL))
    return [greeting]
"""

BREAKS_OFF = """
from quart import Blueprint
from collidium.hookspecs import hookimpl

half = Blueprint("half", __name__, url_prefix="/half")

@half.get("/")
async def left_behind():
    return {}

half.record(lambda state: 1 / 0)

@hookimpl
def collidium_blueprints(settings):
    return [half]
"""

#: What is wrong, by the name of the plugin.
BAD = {
    "admins": HOOK.format(blueprint='Blueprint("a", __name__, url_prefix="/admin/mine")'),
    "doubled": HOOK.format(blueprint='Blueprint("b", __name__, url_prefix="//admin")'),
    "ending": HOOK.format(blueprint='Blueprint("c", __name__, url_prefix="/ending/")'),
    "variable": HOOK.format(blueprint='Blueprint("d", __name__, url_prefix="/<path:all>")'),
    "everything": HOOK.format(blueprint='Blueprint("e", __name__, url_prefix="/")'),
    "nowhere": HOOK.format(blueprint='Blueprint("f", __name__)'),
    "taken_name": HOOK.format(blueprint='Blueprint("health", __name__, url_prefix="/taken")'),
    "below_the_hub": HOOK.format(blueprint='Blueprint("g", __name__, url_prefix="/hub/api")'),
    "no_blueprint": HOOK.format(blueprint='type("Odd", (), {"url_prefix": "/odd"})()'),
    "breaks_off": BREAKS_OFF,
}

OBSERVER = """
import json, time
from pathlib import Path
from collidium.hookspecs import hookimpl

HERE = Path(__file__).parent

@hookimpl
def collidium_submission_scored(submission):
    while not (HERE / "go-on").exists():
        time.sleep(0.01)
    beside = HERE / "beside"
    beside.write_text(json.dumps(submission))
    beside.rename(HERE / "heard.json")
"""


def get(server: ServerProcess, path: str) -> httpx.Response:
    return httpx.get(server.base_url + path, trust_env=False)


def test_a_blueprint_is_mounted_and_bad_ones_stop_nobody(start_server: StartServer, tmp_path: Path) -> None:
    site = tmp_path / "site"
    install(site, "strangers", {"greeting": GREETING, **BAD})
    server = start_server({"PYTHONPATH": str(site)})
    assert get(server, "/greeting/").json() == {"hello": "world"}
    assert get(server, "/healthz").status_code == 200
    for path in ("/half/", "/taken", "/odd", "/admin/mine"):
        assert get(server, path).status_code == 404
    failed = get(server, "/readyz").json()["plugins_failed"]
    assert len(failed) == len(BAD)
    log = (server.directory / "server.log").read_text()
    for name in BAD:
        assert any(f"plugin {name!r} of strangers" in line for line in failed)
        assert f"plugin {name}" in log
    listed = server.run("plugin", "list", "--json")
    assert listed.returncode == 0, listed.stderr
    states = {plugin["name"]: plugin["state"] for plugin in json.loads(listed.stdout)["plugins"]}
    assert {name for name, state in states.items() if state == "failed"} == set(BAD)
    assert states["greeting"] == "loaded"


def test_an_observer_hears_what_everybody_may_see_and_delays_nobody(
    start_server: StartServer, tmp_path: Path, oracle: pa.Table
) -> None:
    site = tmp_path / "site"
    install(site, "observer", {"observer": OBSERVER})
    server = start_server({"PYTHONPATH": str(site)})
    import_truth(server)
    with signed_in(server, "alice") as alice:
        answer = alice.post("/v1/benchmark/tracking/submit", content=parquet(oracle))
        assert answer.status_code == 200, answer.text
        assert alice.get("/v1/me").status_code == 200
        assert not (site / "heard.json").exists()
        (site / "go-on").touch()
        eventually((site / "heard.json").exists)
        shown = alice.get(f"/v1/submissions/{answer.json()['submission_id']}").json()
    assert json.loads((site / "heard.json").read_text()) == shown


def test_the_server_waits_for_observers_when_it_stops(
    start_server: StartServer, tmp_path: Path, oracle: pa.Table
) -> None:
    site = tmp_path / "site"
    install(site, "observer", {"observer": OBSERVER.replace("go-on", "waits")})
    server = start_server({"PYTHONPATH": str(site)})
    import_truth(server)
    with signed_in(server, "alice") as alice:
        assert alice.post("/v1/benchmark/tracking/submit", content=parquet(oracle)).status_code == 200
    # It never goes on: the end comes all the same, and is told.
    assert server.stop() == 0
    assert "still observes something" in (server.directory / "server.log").read_text()
