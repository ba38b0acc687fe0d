"""Clients generated from the OpenAPI document order, wait, cancel, submit and read an event."""

from __future__ import annotations

import importlib
import io
import json
import os
import pkgutil
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import pyarrow as pa
import pytest
from tests.core.api.conftest import OpenPlatform, parquet
from tests.needs import Needs
from tests.plugins.webapps import node
from tests.waiting import eventually

from collidium.testing.server import ServerProcess

ROOT = Path(__file__).parents[3]
TYPESCRIPT = ROOT / "tests" / "generated_clients"
#: What npm reports when it cannot reach the registry, which is not the document's fault.


@pytest.fixture(scope="module")
def platform(
    open_platform: OpenPlatform, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerProcess]:
    """A server whose jobs take a second."""
    with open_platform(tmp_path_factory.mktemp("server"), {"PLATFORM_MOCK_SECONDS": "1"}) as server:
        yield server


@pytest.fixture(scope="module")
def document(platform: ServerProcess, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("document") / "openapi.json"
    file.write_bytes(httpx.get(f"{platform.base_url}/openapi.json", trust_env=False).content)
    return file


@pytest.fixture
def python_client(document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of the package that openapi-python-client makes."""
    package = "collidium_api"
    generated = subprocess.run(
        [
            *(sys.executable, "-m", "openapi_python_client", "generate", "--meta", "none"),
            *("--path", document, "--output-path", tmp_path / package),
            *("--config", ROOT / "docs" / "openapi-python-client.yaml", "--fail-on-warning"),
        ],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PATH": node.PATH},  # it formats what it makes with ruff
    )
    assert generated.returncode == 0, generated.stdout + generated.stderr
    monkeypatch.syspath_prepend(tmp_path)
    return package


def test_a_python_client_is_generated_and_works(
    python_client: str, platform: ServerProcess, oracle: pa.Table
) -> None:
    def module(name: str) -> ModuleType:
        return importlib.import_module(f"{python_client}.{name}")

    def call(name: str, *arguments: object, **options: object) -> Any:
        parsed = module(f"api.{name}").sync(*arguments, client=client, **options)
        assert type(parsed).__name__ != "Problem", parsed
        return parsed

    package = importlib.import_module(python_client)
    for found in pkgutil.walk_packages(package.__path__, f"{python_client}."):
        importlib.import_module(found.name)
    token = platform.add_user("python")
    client = module("client").AuthenticatedClient(
        platform.base_url, token, httpx_args={"trust_env": False}, timeout=httpx.Timeout(60)
    )
    preset, file = module("models").PresetBody, module("types").File

    with client:
        request = call("simulation.simulate", body=preset("ttbar-quick", seed=5))
        eventually(lambda: call("simulation.request", request.request_id).state == "completed")
        request = call("simulation.simulate", body=preset("ttbar-quick", seed=6))
        call("simulation.cancel", request.request_id)
        eventually(lambda: call("simulation.request", request.request_id).state == "cancelled")
        receipt = call("benchmark.submit", "tracking", body=file(io.BytesIO(parquet(oracle))))
        assert receipt.scores["trackml_weighted_efficiency"] == 1
        event = call("datasets.event", "ttbar_pu0", "0")
        assert pa.ipc.open_stream(event.payload).read_all().num_rows


def test_a_typescript_client_is_generated_and_works(
    needs: Needs, document: Path, platform: ServerProcess, oracle: pa.Table, tmp_path: Path
) -> None:
    needs("npm")
    flow = shutil.copytree(TYPESCRIPT, tmp_path / "client", ignore=shutil.ignore_patterns("node_modules"))
    predictions = tmp_path / "predictions.parquet"
    predictions.write_bytes(parquet(oracle))

    def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {"PATH": node.PATH, "npm_config_update_notifier": "false"}
        return subprocess.run(
            command, cwd=flow, env=environment, capture_output=True, text=True, check=False, timeout=100
        )

    installed = run(node.program("npm"), "ci")
    assert installed.returncode == 0, installed.stderr
    binaries = flow / "node_modules" / ".bin"
    generated = run(
        binaries / "openapi-typescript", document, "--default-non-nullable", "false", "--output", "api.d.ts"
    )
    assert generated.returncode == 0, generated.stderr
    checked = run(binaries / "tsc", "--project", ".")
    assert checked.returncode == 0, checked.stdout
    done = run(node.program("node"), "flow.ts", platform.base_url, platform.add_user("node"), predictions)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert (seen["completed"], seen["cancelled"]) == ("completed", "cancelled")
    assert seen["scores"]["trackml_weighted_efficiency"] == 1
    assert seen["bytes"] > 0
