"""Writes docs/settings.md from the declared settings: ``python docs/make_settings.py``."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo

from collidium.cli.settings import CLIENT_SETTINGS
from collidium.settings import GIBIBYTE, MEBIBYTE, PREFIX, Settings, as_written

PAGE = Path(__file__).with_name("settings.md")

_INTRODUCTION = """\
# Settings

Written by `docs/make_settings.py` from `collidium.settings`; do not edit.

Settings come from the environment or from a file `.env` in the directory where the command runs; the
environment wins. A name that begins with `PLATFORM_` and is not listed here is an error at start, and every
problem is reported at once. Lists are separated by commas.

| variable | default | meaning |
|---|---|---|
"""

_CLIENTS = """
## Of clients

| variable | default | meaning |
|---|---|---|
"""


def settings_page() -> str:
    """The whole page."""
    rows = [_row(name, field) for name, field in Settings.model_fields.items()]
    of_clients = [
        f"| `{name}` | {_shown(default)} | {meaning} |\n"
        for name, (default, meaning) in CLIENT_SETTINGS.items()
    ]
    return _INTRODUCTION + "".join(rows) + _CLIENTS + "".join(of_clients)


def _row(name: str, field: FieldInfo) -> str:
    variable = field.validation_alias or PREFIX + name.upper()
    description = (field.description or "").replace("|", "\\|")
    return f"| `{variable}` | {_default(name, field)} | {description} |\n"


def _default(name: str, field: FieldInfo) -> str:
    if name == "data_dir":
        return "`~/.local/share/collidium`"
    return _shown(field.default)


def _shown(value: Any) -> str:
    if value is None or value in ("", (), {}):
        return "none"
    if isinstance(value, int) and value >= MEBIBYTE:
        unit, name = (GIBIBYTE, "GiB") if value % GIBIBYTE == 0 else (MEBIBYTE, "MiB")
        return f"`{value}` ({value // unit} {name})"
    if isinstance(value, Decimal):
        value = f"{value.normalize():f}"
    return f"`{as_written(value)}`"


if __name__ == "__main__":
    PAGE.write_text(settings_page())
