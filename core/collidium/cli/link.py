"""``collidium link``: the model, the code and the paper of a submission."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from collidium.cli.calling import client
from collidium.cli.leaderboard import model_cell
from collidium.cli.output import json_option, print_json, print_record

if TYPE_CHECKING:
    from collidium.client.calls import Links

#: What `--remove` names, and the field.
_FIELDS = {"model": "model_repo", "code": "code_url", "paper": "paper_url"}


@click.command()
@click.argument("submission")
@click.option("--model-repo", metavar="NAMESPACE/NAME", help="The model's repository on the hub.")
@click.option("--code-url", metavar="URL", help="HTTPS address of the code.")
@click.option("--paper-url", metavar="URL", help="HTTPS address of the paper.")
@click.option("--remove", multiple=True, type=click.Choice(list(_FIELDS)), help="Remove a link; repeatable.")
@json_option
def link(
    submission: str,
    model_repo: str | None,
    code_url: str | None,
    paper_url: str | None,
    remove: tuple[str, ...],
    as_json: bool,
) -> None:
    """Set the links of SUBMISSION, which is yours; links that are not named stay.

    The hub is asked with your token whether the model's repository is yours or your organisation's
    (verified), another's (unverified), or not visible to you (missing). Setting it again checks it again.

    \b
    collidium link 0f8c2a4be91d4f2f9b0d5a1c7e3b6d48 --model-repo alice/helix
    collidium link 0f8c2a4be91d4f2f9b0d5a1c7e3b6d48 --code-url https://github.com/alice/helix --json
    collidium link 0f8c2a4be91d4f2f9b0d5a1c7e3b6d48 --remove paper
    """
    given = {"model_repo": model_repo, "code_url": code_url, "paper_url": paper_url}
    links: Links = {name: value for name, value in given.items() if value is not None}  # type: ignore[assignment]  # by these names
    for name in remove:
        if _FIELDS[name] in links:
            raise click.UsageError(f"the {name} is set and removed at once")
    links |= dict.fromkeys(_FIELDS[name] for name in remove)  # type: ignore[typeddict-item]  # by these names
    if not links:
        raise click.UsageError("nothing to change: name a link, or --remove one")
    with client() as server:
        kept = server.set_links(submission, **links)
    if as_json:
        print_json(kept)
    else:
        print_record({"model": model_cell(kept), "code": kept.code_url, "paper": kept.paper_url})
