"""``collidium benchmark``: what operators decide about submissions."""

from __future__ import annotations

import click

from collidium.cli.calling import client
from collidium.cli.output import json_option, print_json, print_record


@click.group()
def benchmark() -> None:
    """Decide about submissions."""


@benchmark.command()
@click.argument("submission_id")
@json_option
def verify(submission_id: str, as_json: bool) -> None:
    """Believe what a submission reports of itself, so that it earns what it is worth; needs ADMIN_TOKEN.

    \b
    collidium benchmark verify 0f8c2a4be91d4f2f9b0d5a1c7e3b6d48
    """
    with client() as server:
        verified = server.admin_verify(submission_id)
    if as_json:
        print_json(verified)
        return
    print_record(
        {
            "submission": verified.submission_id,
            "task": verified.task,
            "account": verified.hub_username,
            "verified": verified.verified_at,
            "credits earned": verified.credits_earned,
        }
    )
