"""Third-party plugins in a running server: their features work, and their errors are isolated."""

from __future__ import annotations

import json
import os
from pathlib import Path

import httpx
import pyarrow as pa
import pytest
from tests.distributions import install
from tests.waiting import eventually

from collidium.testing.plugin import StartServer
from collidium.testing.server import ServerProcess

from .conftest import SUBMIT, operating, parquet, signed_in
from .timed_task import install_timed

#: Hooks that a server calls when it starts.
CALLED_HOOKS = [
    "collidium_tasks",
    "collidium_identity_providers",
    "collidium_storages",
    "collidium_executors",
    "collidium_blueprints",
]

IMPORTS = """
from quart import Blueprint
from collidium.hookspecs import hookimpl
"""

HOOK = """
@hookimpl
def collidium_blueprints(settings):
    return [{blueprint}]
"""

GREETING = """
greeting = Blueprint("greeting", __name__, url_prefix="/greeting")

@greeting.get("/")
async def greet():
    return {"hello": "world"}

@greeting.get("/leave")
async def leave():
    raise SystemExit(3)

@greeting.get("/interrupt")
async def interrupt():
    raise KeyboardInterrupt
""" + HOOK.format(blueprint="greeting")

EVERYWHERE = """
everywhere = Blueprint("everywhere", __name__, url_prefix="/")

@everywhere.get("/half")
async def not_the_front_page():
    return {}
""" + HOOK.format(blueprint="everywhere")

BREAKS_OFF = """
half = Blueprint("half", __name__, url_prefix="/half")

@half.get("/")
async def left_behind():
    return {}

half.record(lambda state: 1 / 0)
""" + HOOK.format(blueprint="half")

#: A blueprint that works, with functions around serving.
AROUND = """
own = Blueprint("{name}", __name__, url_prefix="/{name}")

@own.before_request
async def first():
    assert "{name}" != "before", "asked before it has started"

@own.get("/")
async def show():
    return {{"name": "{name}"}}

{around}

@hookimpl
def collidium_blueprints():
    return [own]
"""

#: What blueprints do around serving, by the name of the plugin.
AROUND_SERVING = {
    "before": "@own.before_app_serving\nasync def start():\n    raise OSError('no cable')",
    "in_thread": "@own.before_app_serving\ndef start():\n    raise OSError('no cable')",
    "during": "@own.while_app_serving\nasync def serve():\n    raise OSError('no cable')\n    yield",
    "never": "@own.while_app_serving\nasync def serve():\n    if False:\n        yield",
    "leaves": "@own.before_app_serving\nasync def start():\n    raise SystemExit(3)",
    "interrupts": "@own.before_app_serving\nasync def start():\n    raise KeyboardInterrupt",
    "cancels": "@own.before_app_serving\nasync def start():\n    import asyncio as a; raise a.CancelledError",
    "stopping": "@own.while_app_serving\nasync def serve():\n    yield\n    raise OSError('cut')",
    "endless": "@own.while_app_serving\nasync def serve():\n    yield\n    yield",
    "after": "@own.after_app_serving\nasync def end():\n    raise OSError('cut')",
    "works": "@own.while_app_serving\nasync def serve():\n    yield\n    print('ended well')",
}

#: What is wrong, by the name of the plugin.
BAD = {
    "admins": HOOK.format(blueprint='Blueprint("a", __name__, url_prefix="/admin/mine")'),
    "other_case": HOOK.format(blueprint='Blueprint("h", __name__, url_prefix="/V1")'),
    "doubled": HOOK.format(blueprint='Blueprint("b", __name__, url_prefix="//admin")'),
    "ending": HOOK.format(blueprint='Blueprint("c", __name__, url_prefix="/ending/")'),
    "variable": HOOK.format(blueprint='Blueprint("d", __name__, url_prefix="/<path:all>")'),
    "everywhere": EVERYWHERE,
    "nowhere": HOOK.format(blueprint='Blueprint("f", __name__)'),
    "taken_name": HOOK.format(blueprint='Blueprint("health", __name__, url_prefix="/taken")'),
    "below_the_hub": HOOK.format(blueprint='Blueprint("g", __name__, url_prefix="/hub/api")'),
    "no_blueprint": HOOK.format(blueprint='type("Odd", (), {"url_prefix": "/odd"})()'),
    "breaks_off": BREAKS_OFF,
}

#: Prints each call of a hook, and brings nothing.
CALLED = """
import os
from pathlib import Path

def called(hook):
    with Path(__file__).with_name(f"calls-of-{os.getpid()}").open("a") as file:
        file.write(hook + chr(10))
    return []
""" + "".join(
    f"""
@hookimpl
def {hook}():
    return called("{hook}")
"""
    for hook in CALLED_HOOKS
)

#: Fails as its caller's token says; no message of its own may be shown.
ODD_IDENTITY = """
from collidium.contracts.identity import Identity, IdentityProvider

class Odd(IdentityProvider):
    name = "odd"

    async def identify(self, token):
        if token == "nameless-secret":
            return Identity("no name " + token)
        if token == "broken-secret":
            raise KeyError(token)
        if token == "leaving-secret":
            raise SystemExit(token)
        if token == "interrupting-secret":
            raise KeyboardInterrupt(token)
        if token == "text-secret":
            return "alice"
        return Identity("alice")

    async def close(self):
        pass

@hookimpl
def collidium_identity_providers():
    return [Odd()]
"""

OBSERVER = """
import json
from pathlib import Path

HERE = Path(__file__).parent

@hookimpl
def collidium_submission_scored(submission):
    with (HERE / "go-on").open() as pipe:
        pipe.read(1)  # until the test lets it go on
    written = HERE / "written"
    written.write_text(json.dumps(submission))
    written.rename(HERE / "heard.json")
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Where a test installs its plugins."""
    return tmp_path / "site"


def install_plugins(site: Path, modules: dict[str, str]) -> dict[str, str]:
    """Install them as a distribution ``third-party``; returns what a server needs to find them."""
    install(site, "third-party", {name: IMPORTS + source for name, source in modules.items()})
    return {"PYTHONPATH": str(site)}


def get(server: ServerProcess, path: str) -> httpx.Response:
    return httpx.get(server.base_url + path, trust_env=False)


def test_a_blueprint_is_mounted_and_faults_stop_no_server(start_server: StartServer, site: Path) -> None:
    third_party = install_plugins(site, {"greeting": GREETING, **BAD})
    # Without the pages that come with the platform the front page is free for any plugin.
    server = start_server(third_party | {"PLATFORM_PLUGINS_BLOCKED": "webapps"})
    assert get(server, "/greeting/leave").status_code == 500
    assert get(server, "/greeting/interrupt").status_code == 500
    assert get(server, "/greeting/").json() == {"hello": "world"}
    assert get(server, "/healthz").status_code == 200
    # No plugin is left to have a front page.
    assert get(server, "/").headers["location"] == "/openapi.json"
    for path in ("/half", "/half/", "/taken", "/odd", "/admin/mine"):
        assert get(server, path).status_code == 404
    failed = get(server, "/readyz").json()["plugins_failed"]
    assert len(failed) == len(BAD)
    assert sum("may only provide the front page" in line for line in failed) == 1
    log = server.log()
    for name in BAD:
        assert any(f"plugin {name!r} of third-party" in line for line in failed)
        assert f"plugin {name}" in log
    listed = server.run("plugin", "list", "--json")
    assert listed.returncode == 0, listed.stderr
    states = {plugin["name"]: plugin["state"] for plugin in json.loads(listed.stdout)["plugins"]}
    assert {name for name, state in states.items() if state == "failed"} == set(BAD)
    assert states["greeting"] == "loaded"


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_serving_process_calls_each_hook_once(start_server: StartServer, site: Path, workers: str) -> None:
    server = start_server(install_plugins(site, {"called": CALLED}) | {"PLATFORM_WORKERS": workers})
    calls = {path.name: path.read_text().split() for path in site.glob("calls-of-*")}
    if workers == "2":
        # The process that looks after the others serves no requests.
        calls.pop(f"calls-of-{server.pid}")
    assert len(calls) == int(workers)
    assert all(sorted(hooks) == sorted(CALLED_HOOKS) for hooks in calls.values())


def test_failures_around_serving_stop_no_other_plugin(start_server: StartServer, site: Path) -> None:
    modules = {name: AROUND.format(name=name, around=around) for name, around in AROUND_SERVING.items()}
    server = start_server(install_plugins(site, modules))
    unstarted = {"before", "in_thread", "during", "never", "leaves", "interrupts", "cancels"}
    for name in AROUND_SERVING:
        assert get(server, f"/{name}/").status_code == (503 if name in unstarted else 200), name
    failed = get(server, "/readyz").json()["plugins_failed"]
    assert len(failed) == len(unstarted)
    for name in unstarted:
        message = f"plugin '{name}' of third-party: the start of blueprint '/{name}': "
        assert any(line.startswith(message) for line in failed)
    assert server.stop() == 0
    log = server.log()
    for name in ("stopping", "endless", "after"):
        assert f"plugin {name} failed in the end of blueprint '/{name}'" in log
    assert "ended well" in (server.directory / "server.out").read_text()


def test_a_failing_identity_provider_gives_503_and_no_token(start_server: StartServer, site: Path) -> None:
    server = start_server(
        install_plugins(site, {"odd_identity": ODD_IDENTITY}) | {"PLATFORM_IDENTITY": "odd"}
    )

    def me(token: str) -> httpx.Response:
        headers = {"Authorization": f"Bearer {token}"}
        return httpx.get(f"{server.base_url}/v1/me", headers=headers, trust_env=False)

    assert me("good").json()["hub_username"] == "alice"
    kinds = {"nameless-secret": "ValueError", "broken-secret": "KeyError", "text-secret": "str, no Identity"}
    kinds |= {"leaving-secret": "SystemExit", "interrupting-secret": "KeyboardInterrupt"}
    for token, kind in kinds.items():
        answer = me(token)
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "10")
        assert kind in server.log()
    assert "secret" not in server.log()


def test_an_observer_gets_public_events_and_delays_no_answer(
    start_platform: StartServer, site: Path, oracle: pa.Table
) -> None:
    third_party = install_plugins(site, {"observer": OBSERVER})
    os.mkfifo(site / "go-on")
    server = start_platform(third_party)
    # Open both ways, so that opening waits for no writer.
    with signed_in(server, "alice") as alice, (site / "go-on").open("r+b", buffering=0) as go_on:
        answer = alice.post(SUBMIT, content=parquet(oracle))
        assert answer.status_code == 200, answer.text
        assert alice.get("/v1/me").status_code == 200
        assert not (site / "heard.json").exists()
        go_on.write(b"!")
        eventually((site / "heard.json").exists)
        shown = alice.get(f"/v1/submissions/{answer.json()['submission_id']}").json()
        assert json.loads((site / "heard.json").read_text()) == shown
        # The next one never goes on: the server waits for it, ends all the same, and logs it.
        another = parquet(oracle.slice(1))
        assert alice.post(SUBMIT, content=another).status_code == 200
        assert server.stop() == 0
    assert "still observes something" in server.log()


def test_a_task_installed_since_the_start_needs_a_restart(start_server: StartServer, site: Path) -> None:
    server = start_server({"PYTHONPATH": str(site)})
    install_timed(site)
    assert server.run("task", "add", "timed").returncode == 0
    with signed_in(server, "alice") as alice, operating(server) as operator:
        answers = [
            alice.get("/v1/challenges/timed"),
            alice.get("/leaderboard/timed"),
            alice.post("/v1/benchmark/timed/submit", content=b"x"),
        ]
        made = operator.post("/admin/challenges", json={"name": "timed-2027", "task": "timed"})
    for answer in answers:
        assert "or not yet when the server started: then restart it" in answer.text, answer.url
        assert "did you mean" not in answer.text
    assert "a server has the plugins that were installed when it started" in made.json()["detail"]
