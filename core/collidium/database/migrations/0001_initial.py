"""The schema, and what the database itself refuses.

``0001_initial.toml`` has the tables. The ledger is append-only and no balance is below zero. How a request ended is
never changed, but for one thing: of what failed, more can be given back. These are triggers and checks in SQL because
Tortoise's migrations drop constraints of a model's Meta.
"""

import tomllib
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

from tortoise import fields, migrations
from tortoise.indexes import Index
from tortoise.migrations import operations as ops
from tortoise.migrations.schema_editor import BaseSchemaEditor
from tortoise.migrations.schema_generator.state_apps import StateApps


def _tables() -> Iterator[ops.CreateModel]:
    """Create the tables of the file; the key of each is its first column."""
    for model, table in tomllib.loads(_text("toml")).items():
        columns: list[tuple[str, Any]] = [
            (name, _field(name, **column)) for name, column in table["columns"].items()
        ]
        options: dict[str, Any] = {
            "table": table["table"],
            "app": "collidium",
            "pk_attr": columns[0][0],
            "table_description": table["description"],
        }
        if "unique_together" in table:
            options["unique_together"] = tuple(map(tuple, table["unique_together"]))
        if "indexes" in table:
            options["indexes"] = [Index(fields=index) for index in table["indexes"]]
        yield ops.CreateModel(model, columns, options)


def _field(name: str, kind: str, **options: Any) -> Any:
    if kind == "ForeignKeyField":  # the row that it refers to stays as long as this one
        options |= {"on_delete": fields.RESTRICT, "source_field": f"{name}_id", "to_field": "id"}
    elif kind == "DecimalField" and "default" in options:
        options["default"] = Decimal(options["default"])
    elif kind == "JSONField" and "default" in options:
        options["default"] = options["default"].__class__  # a new one for each row
    return getattr(fields, kind)(**options)


def _text(ending: str) -> str:
    return Path(__file__).with_suffix(f".{ending}").read_text(encoding="utf-8")


async def _forward(apps: StateApps, editor: BaseSchemaEditor) -> None:
    dialect = "sqlite" if editor.DIALECT == "sqlite" else "postgresql"
    await editor.client.execute_script(_text(f"{dialect}.sql"))


class Migration(migrations.Migration):
    initial = True

    operations = [*_tables(), ops.RunPython(_forward)]
