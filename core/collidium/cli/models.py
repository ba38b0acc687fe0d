"""``collidium models``: models that their owners share on the hub."""

from __future__ import annotations

import click

from collidium.cli.calling import client
from collidium.cli.listing import limit_option
from collidium.cli.output import json_option, print_json, print_table


@click.command()
@click.option("--search", default="", metavar="TEXT", help="Only those with this in their name.")
@click.option("--tag", default="", help="Only those with this tag.")
@click.option("--task", default="", help="Only those that say they are for this benchmark task.")
@limit_option("models")
@json_option
def models(search: str, tag: str, task: str, limit: int, as_json: bool) -> None:
    """List models on the hub that carry the platform's tag, the latest first.

    \b
    collidium models
    collidium models --task tracking --json
    """
    with client() as server:
        found = server.models(search=search, tag=tag, task=task, limit=limit).items
    if as_json:
        print_json(found)
    else:
        print_table(
            ("model", "tasks", "tags", "downloads", "likes", "updated"),
            (
                (model.model_repo, model.tasks, model.tags, model.downloads, model.likes, model.updated_at)
                for model in found
            ),
        )
