"""``collidium evaluations``: models that the server runs, and how far they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from collidium import __version__
from collidium.cli.context import client
from collidium.cli.options import EXISTING_FILE, FILE, json_option, limit_option
from collidium.cli.output import ColumnSpec, note, print_json, print_record, printable, show_items
from collidium.errors import InvalidInput

STATES: Final = ("received", "checking", "running", "scored", "failed", "cancelled")

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from collidium.client import Client, Evaluation


@click.command()
@click.argument("evaluation_id", metavar="[EVALUATION]", required=False)
@click.option("--wait", is_flag=True, help="Wait until EVALUATION has ended.")
@click.option("--cancel", is_flag=True, help="Cancel EVALUATION.")
@limit_option("evaluations")
@json_option
def evaluations(evaluation_id: str | None, wait: bool, cancel: bool, limit: int, as_json: bool) -> None:
    """List your models that the server runs or ran, newest first; or show EVALUATION.

    `collidium submit TASK --model` sends one.

    \b
    collidium evaluations
    collidium evaluations 0123456789abcdef0123456789abcdef --wait
    collidium evaluations 0123456789abcdef0123456789abcdef --cancel
    """
    if evaluation_id is None and (wait or cancel):
        raise click.UsageError("give the EVALUATION")
    with client() as server:
        if evaluation_id is None:
            show_evaluations(server.evaluations(limit=limit).items, as_json=as_json)
            return
        found = server.cancel_evaluation(evaluation_id) if cancel else server.evaluation(evaluation_id)
        show_evaluation(server, found, wait=wait, as_json=as_json)


@click.command()
@click.argument("submission_id", metavar="SUBMISSION")
@click.option("--model", type=EXISTING_FILE, required=True, help="The ONNX file that was submitted.")
@click.option("--manifest", type=EXISTING_FILE, required=True, help="Its manifest.")
@click.option("--output", type=FILE, default="bundle.zip", show_default=True, help="The file to write.")
@json_option
def bundle(submission_id: str, model: Path, manifest: Path, output: Path, as_json: bool) -> None:
    """Write a zip file that runs the model of SUBMISSION again.

    It holds model and manifest, which have to be those that were submitted, the submission with all versions
    and hashes, and the commands.

    \b
    collidium bundle 0123456789abcdef0123456789abcdef --model model.onnx --manifest manifest.toml
    """
    from zipfile import ZIP_DEFLATED, ZipFile

    from collidium.files.durable import sha256_of
    from collidium.records import encode

    with client() as server:
        sent = server.submission(submission_id)
    if sent.model is None:
        raise InvalidInput(f"submission {submission_id} is of predictions, not of a model")
    files = {
        "model.onnx": (model, sent.model.sha256),
        "manifest.toml": (manifest, sent.model.manifest_sha256),
    }
    problems = [
        {"field": name, "detail": f"{path} is not what was submitted, which has the sha256 {sha256}"}
        for name, (path, sha256) in files.items()
        if sha256_of(path) != sha256
    ]
    if problems:
        raise InvalidInput("these are other files", errors=problems)
    with ZipFile(output, "x", ZIP_DEFLATED) as written:
        for name, (path, _) in files.items():
            written.write(path, name)
        written.writestr("submission.json", encode(sent))
        requirement = sent.model.runtime.replace(" ", "==")
        readme = _README.format(sent=sent, release=__version__, requirement=requirement)
        written.writestr("README.md", readme)
    if as_json:
        print_json({"bundle": str(output), "submission": submission_id, "model": sent.model})
    else:
        click.echo(printable(f"{output} has model, manifest, submission.json and README.md."))


_README: Final = """\
# A model of {sent.task}

Submission {sent.submission_id} of {sent.hub_username} to {sent.challenge}, by
scorer {sent.scorer_version} and truth {sent.truth_version}, run with {requirement} by
collidium {release}. Scores, hashes and versions are in `submission.json`.

```sh
pip install 'collidium[onnx]=={release}' '{requirement}'
collidium model check model.onnx
collidium model run model.onnx --from DIRECTORY --events FIRST:STOP
collidium score {sent.task} predictions.parquet --from DIRECTORY --events FIRST:STOP
```

DIRECTORY has events with truth, such as the training events that `collidium tasks {sent.task}` shows.
"""


def show_evaluations(found: Sequence[Evaluation], *, accounts: bool = False, as_json: bool) -> None:
    """Evaluations as a table, with the account of each if ``accounts``, or as JSON."""
    columns: dict[str, ColumnSpec] = {
        "evaluation": "evaluation_id",
        **({"account": "hub_username"} if accounts else {}),
        "challenge": "challenge",
        "state": state_text,
        "parameters": "n_params",
        "received": "received_at",
        "submission": "submission_id",
    }
    show_items(found, columns, as_json=as_json)


def show_evaluation(server: Client, found: Evaluation, *, wait: bool, as_json: bool) -> None:
    """One evaluation, when it has ended if ``wait``; exit code 1 where it has failed then."""
    if wait and not found.has_ended:
        found = server.wait_for_model(
            found.evaluation_id, on_change=lambda seen: note(f"The model is {state_text(seen)}.")
        )
    if as_json:
        print_json(found)
    else:
        print_record(
            {
                "evaluation": found.evaluation_id,
                "challenge": found.challenge,
                "state": state_text(found),
                "reason": found.reason,
                "parameters": found.n_params,
                "received": found.received_at,
                "submission": found.submission_id,
            }
        )
        if found.submission_id:
            click.echo(printable(f"`collidium submissions {found.submission_id}` shows its scores."))
    if wait and found.state != "scored":
        raise SystemExit(1)


def state_text(found: Evaluation) -> str:
    """The state, and how far it is."""
    if found.state != "running":
        return found.state
    return f"running, {found.events_done} of {found.events} events"
