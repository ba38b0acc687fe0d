"""The files of ``deploy/``, checked by the programs that read them; nothing of it is started."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import trustme
import yaml
from tests.needs import Needs
from tortoise.models import Model

from collidium import database, settings
from collidium.files import data_directory

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
PATH = f"{Path(sys.executable).parent}:/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin"


def checked(*command: str, directory: Path = DEPLOY) -> str:
    """What a program writes that finds nothing wrong. Caddy makes keys in its home."""
    with TemporaryDirectory() as home:
        done = subprocess.run(
            command,
            cwd=directory,
            env={"PATH": PATH, "HOME": home},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_the_image_is_built_as_it_should_be() -> None:
    assert checked("hadolint", "--failure-threshold", "style", "Containerfile") == ""
    text = (DEPLOY / "Containerfile").read_text()
    assert re.search(r"^USER 10001$", text, re.MULTILINE)
    assert re.search(r"^HEALTHCHECK ", text, re.MULTILINE)


def test_compose_reads_the_services(needs: Needs, tmp_path: Path) -> None:
    needs("podman")
    shutil.copytree(DEPLOY, tmp_path / "deploy")
    shutil.copy(DEPLOY / "collidium.env.example", tmp_path / "deploy" / "collidium.env")
    done = checked(
        *(sys.executable, "-m", "podman_compose", "--env-file", "collidium.env", "config"),
        directory=tmp_path / "deploy",
    )
    services = yaml.safe_load(done)["services"]
    own = [name for name, service in services.items() if service["image"] == "localhost/collidium"]
    assert sorted(own) == ["migrate", "server-1", "server-2", "worker"]
    for name in own:
        assert services[name]["read_only"] is True
        assert services[name]["cap_drop"] == ["ALL"]
    others = {name: service for name, service in services.items() if name not in own}
    assert services["proxy"]["environment"]["SITE"] == "collidium.example.org"
    assert not any("env_file" in service for service in others.values()), "secrets are for whom they are"


def test_the_example_names_settings_that_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = (DEPLOY / "collidium.env.example").read_text().splitlines()
    for line in lines:
        if "=" in line and not line.startswith("#"):
            monkeypatch.setenv(*line.split("=", 1))
    settings.load()  # raises for one that does not


def test_systemd_finds_nothing_to_say_about_the_units(needs: Needs, tmp_path: Path) -> None:
    """It ends with 0 where it does not know a key, and says so."""
    needs("systemd")
    program = tmp_path / "collidium"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    for unit in (DEPLOY / "systemd").iterdir():
        text = unit.read_text().replace("/opt/collidium/bin/collidium", str(program))
        (tmp_path / unit.name).write_text(text)
    units = [str(path) for path in tmp_path.iterdir() if path != program]
    assert len(units) == 4
    assert checked("systemd-analyze", "verify", *units) == ""


def test_nginx_reads_its_configuration(needs: Needs, tmp_path: Path) -> None:
    needs("nginx")
    authority = trustme.CA()
    certificate = authority.issue_cert("collidium.example.org")
    certificate.private_key_pem.write_to_path(tmp_path / "key.pem")
    certificate.cert_chain_pems[0].write_to_path(tmp_path / "fullchain.pem")
    text = (DEPLOY / "proxy" / "nginx.conf").read_text().replace("/etc/ssl/collidium", str(tmp_path))
    # It opens what it would listen on.
    text = re.sub(r"listen (\d+)", lambda found: f"listen unix:{tmp_path}/{found[1]}", text)
    (tmp_path / "nginx.conf").write_text(f"pid {tmp_path}/nginx.pid;\n{text}")
    said = checked("nginx", "-t", "-p", str(tmp_path), "-e", "stderr", "-c", str(tmp_path / "nginx.conf"))
    assert not re.search(r"\[(warn|emerg|error)\]", said), said


def test_caddy_reads_its_configuration(needs: Needs) -> None:
    needs("caddy")
    said = checked("caddy", "validate", "--adapter", "caddyfile", "--config", "proxy/Caddyfile")
    assert not re.search(r'"level":"(warn|error)"', said), said


def test_every_alert_fires_on_what_it_is_for_and_has_its_page(needs: Needs) -> None:
    needs("promtool")
    checked("promtool", "check", "rules", "alerts.yaml", directory=DEPLOY / "prometheus")
    checked("promtool", "test", "rules", "alerts_test.yaml", directory=DEPLOY / "prometheus")
    rules = yaml.safe_load((DEPLOY / "prometheus" / "alerts.yaml").read_text())["groups"][0]["rules"]
    alerts = {rule["alert"] for rule in rules}
    tested = set(re.findall(r'alertname="(\w+)"', (DEPLOY / "prometheus" / "alerts_test.yaml").read_text()))
    assert tested == alerts
    runbook = (ROOT / "docs" / "runbook.md").read_text()
    assert set(re.findall(r"^## (\w+)$", runbook, re.MULTILINE)) == alerts


def test_the_table_of_what_grows_has_every_table_and_directory() -> None:
    page = (ROOT / "docs" / "operate.md").read_text()
    grows = page.partition("## What grows")[2].partition("\n## ")[0]
    named = set(re.findall(r"`([a-z_/-]+)`", grows))
    models = [
        import_module(name) for name in database.config("sqlite:///any")["apps"][database.APP]["models"]
    ]
    tables = {
        model._meta.db_table
        for module in models
        for model in vars(module).values()
        if isinstance(model, type) and issubclass(model, Model) and model is not Model
    }
    assert tables
    assert tables <= named
    assert {*data_directory.PRIVATE, *data_directory.OF_RUNNERS} <= named
