"""``collidium submit``, ``check``, ``submissions`` and ``link``: predictions and what is stored of them."""

from __future__ import annotations

import shlex
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from collidium.cli.challenge.options import all_pages
from collidium.cli.context import client
from collidium.cli.evaluations import show_evaluation
from collidium.cli.model_sources import submitted_model
from collidium.cli.options import EXISTING_FILE, ask, complete_tasks, json_option, limit_option, yes_option
from collidium.cli.output import (
    ColumnSpec,
    note,
    print_json,
    print_record,
    print_table,
    printable,
    show_items,
    show_record,
)
from collidium.cli.progress import progress_bar
from collidium.cli.score import show_scores
from collidium.cli.tasks import model_cell, score_cell, show_quota, value_cell
from collidium.errors import CollidiumError, Forbidden

if TYPE_CHECKING:
    from datetime import datetime

    from collidium.client import Client, Comparison, EvaluatedModel, Page, Receipt, Submission
    from collidium.client.calls import Links


@click.command()
@click.argument("submission_id", metavar="[SUBMISSION]", required=False)
@click.option(
    "--task",
    metavar="TASK",
    help="Only submissions to this task or challenge.",
    shell_complete=complete_tasks,
)
@click.option("--with", "other", metavar="SUBMISSION", help="Compare with this submission to the same task.")
@limit_option("submissions")
@json_option
def submissions(
    submission_id: str | None, task: str | None, other: str | None, limit: int, as_json: bool
) -> None:
    """List your submissions, newest first; or show SUBMISSION, of any account, with its scores in bins.

    `collidium link` sets model, code and paper of yours.

    \b
    collidium submissions
    collidium submissions --task tracking --json
    collidium submissions 0123456789abcdef0123456789abcdef
    collidium submissions 0123456789abcdef0123456789abcdef --with fedcba9876543210fedcba9876543210
    """
    if other is not None and submission_id is None:
        raise click.UsageError("--with compares SUBMISSION: give it, too")
    with client() as server:
        if submission_id is not None and other is not None:
            found = server.compare(submission_id, other)
            print_json(found) if as_json else _show_comparison(server, found)
            return
        if submission_id is not None:
            one = server.submission(submission_id)
            print_json(one) if as_json else _show_submission(one)
            return
        listed = server.submissions(task=task, limit=limit).items
    columns: dict[str, ColumnSpec] = {
        "submission": "submission_id",
        "task": "task",
        **({"challenge": _challenge_cell} if any(map(_challenge_cell, listed)) else {}),
        "scores": lambda sent: [f"{metric} {score_cell(sent, metric)}" for metric in sent.scores],
        "no rank because": "unranked",
        **({"chosen": chosen_cell} if any(map(chosen_cell, listed)) else {}),
        "credits": "credits_earned",
        "model": model_cell,
        "submitted": "submitted_at",
    }
    show_items(listed, columns, as_json=as_json)
    if not listed and not as_json:
        note(f"You have sent none. Those of your team: collidium team submissions {task or 'CHALLENGE'}")


def _show_comparison(server: Client, found: Comparison) -> None:
    one, other = server.submission(found.submission_id), server.submission(found.other_id)
    rows: list[tuple[object, ...]] = [
        (name, score_cell(one, name), score_cell(other, name), value_cell(apart.value, apart.uncertainty))
        for name, apart in found.differences.items()
    ]
    if one.model and other.model:
        theirs = _model_rows(other.model)
        rows += [(name, value, theirs.get(name), None) for name, value in _model_rows(one.model).items()]
    print_table(("metric", one.hub_username, other.hub_username, "difference"), rows)
    if any(not apart.paired for apart in found.differences.values()):
        note("Scored on other events, by another scorer or without draws: errors are added in quadrature.")


def _challenge_cell(sent: Submission) -> str | None:
    """The challenge, where it is another than the task's own."""
    return None if sent.challenge == sent.task else sent.challenge


def chosen_cell(sent: Submission) -> datetime | None:
    """When it was chosen for the final results, unless it cannot be among them."""
    return sent.chosen_at if sent.unranked is None else None


def _show_submission(sent: Submission) -> None:
    show_scores(sent)
    print_record(
        {
            "submission": sent.submission_id,
            "challenge": sent.challenge,
            "of": sent.hub_username,
            "submitted": sent.submitted_at,
            "model": model_cell(sent),
            **(_model_rows(sent.model) if sent.model else {}),
            **({"no rank because": sent.unranked} if sent.unranked else {}),
            **({"chosen": chosen} if (chosen := chosen_cell(sent)) else {}),
            "scorer, truth": (sent.scorer_version, sent.truth_version),
        }
    )


def _model_rows(model: EvaluatedModel) -> dict[str, object]:
    rows: dict[str, object] = {"parameters": model.n_params, "bytes": model.file_bytes}
    if model.seconds is not None:
        rows["seconds of an event"] = f"{model.seconds:.3g} ± {model.seconds_error or 0:.1g}"
    return rows


@click.command()
@click.argument("submission_id", metavar="SUBMISSION")
@click.option("--not", "not_", is_flag=True, help="Take the choice back.")
@json_option
def choose(submission_id: str, not_: bool, as_json: bool) -> None:
    """Choose your SUBMISSION for the final results of its challenge.

    Places that you leave free have your best ones. `collidium challenge show` says how many there are.

    \b
    collidium choose 0123456789abcdef0123456789abcdef
    """
    with client() as server:
        sent = server.set_links(submission_id, final=not not_)
        if as_json:
            print_json(sent)
        else:
            _show_choice(server, sent)


def _show_choice(server: Client, sent: Submission) -> None:
    """What is chosen of its participant now, and how many more may be."""

    def ask(cursor: str | None) -> Page[Submission]:
        if sent.team is None:
            return server.submissions(challenge=sent.challenge, limit=1000, cursor=cursor)
        return server.team_submissions(sent.challenge, limit=1000, cursor=cursor)

    most = server.challenge(sent.challenge).final_submissions
    chosen = [one.submission_id for one in all_pages(ask) if chosen_cell(one)]
    click.echo(f"Chosen for the final results of {sent.challenge}: {len(chosen)} of {most}.")
    for id_ in chosen:
        click.echo(f"  {id_}")
    if free := most - len(chosen):
        note(f"You may choose {free} more; else your best ones count there.")


@click.command()
@click.argument("submission_id", metavar="SUBMISSION")
@yes_option
@json_option
def withdraw(submission_id: str, yes: bool, as_json: bool) -> None:
    """Withdraw your SUBMISSION from its leaderboard, for good, while the challenge is open.

    On a terminal it asks first. The submission still counts as one of its day.

    \b
    collidium withdraw 0123456789abcdef0123456789abcdef
    collidium withdraw 0123456789abcdef0123456789abcdef --yes
    """
    with client() as server:
        # As its page asks.
        lost = "it counts no more, and the day's submission is not given back"
        ask(f"Withdraw {submission_id} for good? Then {lost}.", yes=yes)
        sent = server.withdraw(submission_id)
    print_json(sent) if as_json else click.echo(f"Withdrawn from {sent.challenge}: {submission_id}.")


@click.command("publish-scores")
@click.argument("submission_id", metavar="SUBMISSION")
@click.option("--dry-run", is_flag=True, help="Only show what would change.")
@json_option
def publish_scores(submission_id: str, dry_run: bool, as_json: bool) -> None:
    """Write the scores of your SUBMISSION to its model's card on the hub, as evaluation results.

    With your token, which has to write there: HF_TOKEN, or that of `collidium login`. What else the card has
    stays; scores of the same leaderboard are replaced.

    \b
    collidium publish-scores 0123456789abcdef0123456789abcdef --dry-run
    collidium publish-scores 0123456789abcdef0123456789abcdef
    """
    import asyncio
    from difflib import unified_diff

    from collidium.client import model_scores
    from collidium.hub.client import Hub
    from collidium.hub.sources import find_hub

    with client() as server:
        sent = server.submission(submission_id)
        if sent.hub_username != (caller := server.me().hub_username):
            raise Forbidden(f"the submission is of {sent.hub_username}, and your token of {caller}")
        result = model_scores.result_of(sent, server.challenge(sent.challenge), server.backend)
    hub = find_hub()
    change = asyncio.run(
        model_scores.publish_scores(
            Hub(hub.endpoint, hub.token or ""), sent.model_repo or "", result, dry_run=dry_run
        )
    )
    lines = change.before.splitlines(), change.after.splitlines()
    diff = list(unified_diff(*lines, "before", "after", lineterm=""))
    if as_json:
        print_json({"model_repo": change.model_repo, "changed": bool(diff), "result": result, "diff": diff})
        return
    for line in diff:
        click.echo(printable(line))
    done = "would be written" if dry_run else "are written"
    note(f"The scores {done} to the card of {change.model_repo}." if diff else "The card has these scores.")


@click.command()
@click.argument("task", shell_complete=complete_tasks)
@click.argument("file", type=EXISTING_FILE, required=False)
@click.option(
    "--from-hub",
    metavar="REPO:PATH@COMMIT",
    help="Instead of FILE: a file of a dataset repository, which the server downloads with your token.",
)
@click.option(
    "--model",
    metavar="FILE|REPO@COMMIT",
    help="Instead of FILE: an ONNX model, which the server runs; or the model repository that has model.onnx "
    "and manifest.toml, and which the submission is linked to then.",
)
@click.option("--manifest", type=EXISTING_FILE, help="The manifest of --model.")
@click.option("--wait", is_flag=True, help="With --model: wait until it is scored.")
@click.option("--model-repo", metavar="NAMESPACE/NAME", help="The model's repository on the hub.")
@json_option
@click.pass_context
def submit(
    ctx: click.Context,
    task: str,
    file: Path | None,
    from_hub: str | None,
    model: str | None,
    manifest: Path | None,
    wait: bool,
    model_repo: str | None,
    as_json: bool,
) -> None:
    """Send FILE, a parquet file of predictions, to be scored for TASK; or a model, to be run and scored.

    Sending the same file again returns the first result, and links the model if none was linked; the exit
    code is 1 where that submission has no rank, as after it was withdrawn. The same
    command resumes an interrupted transfer of a large file, within a day. `collidium link` changes links
    later. `collidium check` checks a file without submitting it.

    \b
    collidium submit tracking predictions.parquet
    collidium submit tracking predictions.parquet --model-repo alice/helix
    collidium submit tracking --from-hub alice/predictions:tracking.parquet@main
    collidium submit jets --model model.onnx --manifest manifest.toml --wait
    collidium submit jets --model alice/tagger@main --wait
    """
    if [file, from_hub, model].count(None) != 2 or (model is None and manifest is not None):
        raise click.UsageError("give either FILE, or --from-hub, or --model and --manifest")
    ctx.find_root().obj.check = f"collidium check {shlex.join([task, str(file or 'FILE')])}"
    with client() as server:
        if model is not None:
            with (
                submitted_model(model, manifest) as (content, text, repo),
                progress_bar(f"Sending {content.name}", sizes=True),
            ):
                sent = server.submit_model(task, content, text, model_repo or repo)
            show_evaluation(server, sent, wait=wait, as_json=as_json)
            return
        if file is None:
            receipt = server.submit_from_hub(task, from_hub or "", model_repo)
        else:
            with progress_bar(f"Sending {file.name}", "Scoring", sizes=True) as progress:
                receipt = server.submit(task, file, model_repo, progress)
        if as_json:
            print_json(receipt)
        else:
            _show(receipt)
            with suppress(CollidiumError):  # what counts is done
                show_quota(server.quota(task))
    ctx.exit(1 if receipt.deduplicated and receipt.unranked else 0)


def _show(receipt: Receipt) -> None:
    print_table(("metric", "score"), ((metric, score_cell(receipt, metric)) for metric in receipt.scores))
    print_record(
        {
            "submission": receipt.submission_id,
            "model": model_cell(receipt),
            "credits earned": receipt.credits_earned,
            "rows": receipt.rows,
            "scorer, truth": (receipt.scorer_version, receipt.truth_version),
        }
    )
    if receipt.deduplicated:
        note(
            f"This file was submitted before, and does not count: {receipt.unranked}."
            if receipt.unranked
            else "This file was submitted before; this is its result."
        )
    elif receipt.unranked:
        note(f"It has no rank: {receipt.unranked}.")
    for warning in receipt.warnings:
        note(f"Warning: {warning}")


@click.command()
@click.argument("task", shell_complete=complete_tasks)
@click.argument("file", type=EXISTING_FILE)
@json_option
def check(task: str, file: Path, as_json: bool) -> None:
    """Check FILE, a parquet file of predictions, for TASK on the server, without submitting it.

    Lists every problem with column, event and example rows.

    \b
    collidium check tracking predictions.parquet
    """
    click.get_current_context().find_root().obj.check = None
    with client() as server, progress_bar(f"Sending {file.name}", "Checking", sizes=True) as progress:
        checked = server.check(task, file, progress)
    if as_json:
        print_json(checked)
    else:
        click.echo(printable(f"{file.name} is valid: {checked.rows} rows."))
        for warning in checked.warnings:
            note(f"Warning: {warning}")


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
    """Set the links of your SUBMISSION; links that are not given stay.

    The server asks the hub with your token whether the model's repository belongs to you or your
    organisation (verified), to another account (unverified), or is not visible to you (missing). Setting
    a link again checks it again.

    \b
    collidium link 0f8c2a4be91d4f2f9b0d5a1c7e3b6d48 --model-repo alice/helix
    collidium link 0f8c2a4be91d4f2f9b0d5a1c7e3b6d48 --code-url https://github.com/alice/helix --json
    collidium link 0f8c2a4be91d4f2f9b0d5a1c7e3b6d48 --remove paper
    """
    given = {"model_repo": model_repo, "code_url": code_url, "paper_url": paper_url}
    links: Links = {name: value for name, value in given.items() if value is not None}  # type: ignore[assignment]  # by these names
    for name in remove:
        if _FIELDS[name] in links:
            raise click.UsageError(f"the {name} cannot be both set and removed")
    links |= dict.fromkeys(_FIELDS[name] for name in remove)  # type: ignore[typeddict-item]  # by these names
    if not links:
        raise click.UsageError("nothing to change: give a link, or --remove one")
    with client() as server:
        kept = server.set_links(submission, **links)
    rows = {"model": model_cell(kept), "code": kept.code_url, "paper": kept.paper_url}
    show_record(kept, rows, as_json=as_json)
