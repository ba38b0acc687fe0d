"""``collidium models``: models that their owners share on the hub."""

from __future__ import annotations

import click

from collidium.cli.context import client
from collidium.cli.options import complete_tasks, json_option, limit_option
from collidium.cli.output import show_items


@click.command()
@click.option("--search", default="", metavar="TEXT", help="Only models with this text in their name.")
@click.option("--tag", default="", help="Only models with this tag.")
@click.option(
    "--task", default="", help="Only models tagged with this benchmark task.", shell_complete=complete_tasks
)
@limit_option("models")
@json_option
def models(search: str, tag: str, task: str, limit: int, as_json: bool) -> None:
    """List models on the hub that have the platform's tag, newest first.

    \b
    collidium models
    collidium models --task tracking --json
    """
    with client() as server:
        found = server.models(search=search, tag=tag, task=task, limit=limit).items
    columns = {
        "model": "model_repo",
        "tasks": "tasks",
        "tags": "tags",
        "downloads": "downloads",
        "likes": "likes",
        "updated": "updated_at",
    }
    show_items(found, columns, as_json=as_json)
