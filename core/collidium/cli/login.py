"""``collidium login``: keep a token for a server."""

from __future__ import annotations

import os
import sys

import click

from collidium.cli.calling import client
from collidium.cli.output import note


@click.command()
@click.option("--token-stdin", is_flag=True, help="Read the token from standard input instead of asking.")
@click.option("--forget", is_flag=True, help="Forget the token that was kept.")
def login(token_stdin: bool, forget: bool) -> None:
    """Keep your hub token for the server of PLATFORM_BACKEND, after checking it there.

    The token lies in a file that only you can read. HF_TOKEN, where it is set, wins over it.

    \b
    collidium login
    collidium login --token-stdin < token.txt
    collidium login --forget
    """
    from collidium.client import forget_token, save_token

    if forget:
        with client() as server:
            known = forget_token(server.backend)
        note(f"The token for {server.backend} is forgotten." if known else "There was none to forget.")
        return
    token = _read_token(token_stdin)
    with client(token) as server:
        account = server.me()
    path = save_token(server.backend, token)
    note(f"Logged in to {server.backend} as {account.hub_username}; the token is in {path}.")
    if os.environ.get("HF_TOKEN"):
        note("HF_TOKEN is set and wins over it.")


def _read_token(token_stdin: bool) -> str:
    if token_stdin:
        token = sys.stdin.readline().strip()
    elif not sys.stdin.isatty():
        raise click.UsageError("there is no terminal to ask for the token; use --token-stdin < token.txt")
    else:
        token = str(click.prompt("Hub token", hide_input=True, err=True)).strip()
    if not token:
        raise click.UsageError("the token is empty")
    return token
