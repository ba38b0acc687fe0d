"""``collidium submit``, ``check`` and ``submissions``, and commands that change a submission."""

from __future__ import annotations

import shlex
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from collidium.cli.context import all_pages, client, hub_client
from collidium.cli.model_sources import submitted_model
from collidium.cli.options import EXISTING_FILE, ask, complete_tasks, json_option, limit_option, yes_option
from collidium.cli.output import (
    json_wanted,
    note,
    print_record,
    print_table,
    printable,
    show_items,
    show_message,
    show_record,
    show_value,
)
from collidium.cli.printing import print_score_table, print_scores, show_evaluation
from collidium.cli.progress import progress_bar
from collidium.errors import CollidiumError, Forbidden
from collidium.presentation import consequences
from collidium.presentation import submissions as presented
from collidium.presentation.challenges import quota_text
from collidium.presentation.evaluations import cost_facts
from collidium.presentation.quantities import written
from collidium.presentation.scores import submitted_score

if TYPE_CHECKING:
    from collidium.client import Client, Comparison, Metric, Receipt, Submission
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
def submissions(submission_id: str | None, task: str | None, other: str | None, limit: int) -> None:
    """List your submissions, newest first; or show SUBMISSION, of any account, with its binned scores.

    `collidium link` links your submissions to model, code and paper.

    \b
    collidium submissions
    collidium submissions --task tracking --json
    collidium submissions 0123456789abcdef0123456789abcdef
    collidium submissions 0123456789abcdef0123456789abcdef --with fedcba9876543210fedcba9876543210
    """
    if other is not None and submission_id is None:
        raise click.UsageError("--with needs SUBMISSION, which it compares")
    with client() as server:
        if submission_id is not None and other is not None:
            show_value(server.compare(submission_id, other), partial(_print_comparison, server))
            return
        if submission_id is not None:
            show_value(server.submission(submission_id), partial(_print_submission, server))
            return
        listed = server.submissions(task=task, limit=limit).items
        cards = {} if json_wanted() else {card.name: card for card in server.tasks()}
    show_items(listed, presented.own(cards, listed))
    if not listed and not json_wanted():
        note(f"You have no submissions. For your team: collidium team submissions {task or 'CHALLENGE'}")


def _print_comparison(server: Client, found: Comparison) -> None:
    one, other = server.submission(found.submission_id), server.submission(found.other_id)
    metrics = _metrics_of(server, one.task)
    rows: list[tuple[object, ...]] = [
        (
            name,
            submitted_score(one, name, metrics),
            submitted_score(other, name, metrics),
            written(apart.value, apart.uncertainty),
        )
        for name, apart in found.differences.items()
    ]
    if one.model and other.model:
        theirs = cost_facts(other.model)
        rows += [(name, value, theirs.get(name), None) for name, value in cost_facts(one.model).items()]
    print_table(("metric", one.hub_username, other.hub_username, "difference"), rows)
    if any(not apart.paired for apart in found.differences.values()):
        note("The scores are not paired by event: their errors are added in quadrature.")


def _print_submission(server: Client, sent: Submission) -> None:
    print_scores(sent, _metrics_of(server, sent.task))
    print_record(
        {
            "submission": sent.submission_id,
            "challenge": sent.challenge,
            "of": sent.hub_username,
            "submitted": sent.submitted_at,
            "model": presented.model_text(sent),
            **(cost_facts(sent.model) if sent.model else {}),
            **({"no rank because": sent.unranked} if sent.unranked else {}),
            **({"chosen": chosen} if (chosen := presented.chosen_at(sent)) else {}),
            "scorer, truth": (sent.scorer_version, sent.truth_version),
        }
    )


def _metrics_of(server: Client, task: str) -> tuple[Metric, ...]:
    """Return the metrics of a task or a challenge; none of a task that is no longer listed."""
    try:
        return server.task(task).metrics
    except CollidiumError:  # the scores are shown without it
        return ()


@click.command()
@click.argument("submission_id", metavar="SUBMISSION")
@click.option("--not", "not_", is_flag=True, help="Undo the choice.")
@json_option
def choose(submission_id: str, not_: bool) -> None:
    """Choose your SUBMISSION for the final results of its challenge.

    Your best submissions fill the places that you leave free. `collidium challenge show` shows how many
    there are.

    \b
    collidium choose 0123456789abcdef0123456789abcdef
    """
    with client() as server:
        show_value(server.set_links(submission_id, final=not not_), partial(_print_choice, server))


def _print_choice(server: Client, sent: Submission) -> None:
    """Print the chosen submissions of a participant, and how many more can be chosen."""
    if sent.team is None:
        listed = all_pages(partial(server.submissions, challenge=sent.challenge))
    else:
        listed = all_pages(server.team_submissions, sent.challenge)
    maximum = server.challenge(sent.challenge).final_submissions
    chosen = [one.submission_id for one in listed if presented.chosen_at(one)]
    click.echo(f"Chosen for the final results of {sent.challenge}: {len(chosen)} of {maximum}.")
    for id_ in chosen:
        click.echo(f"  {id_}")
    if free := maximum - len(chosen):
        note(f"You can choose {free} more; by default your best submissions count.")


@click.command()
@click.argument("submission_id", metavar="SUBMISSION")
@yes_option
@json_option
def withdraw(submission_id: str, yes: bool) -> None:
    """Withdraw your SUBMISSION from its leaderboard permanently, while the challenge is open.

    On a terminal, asks for confirmation. The submission still counts for the quota of its day.

    \b
    collidium withdraw 0123456789abcdef0123456789abcdef
    collidium withdraw 0123456789abcdef0123456789abcdef --yes
    """
    with client() as server:
        ask(f"Withdraw {submission_id}? {consequences.WITHDRAW}", yes=yes)
        sent = server.withdraw(submission_id)
    show_message(sent, f"Withdrawn from {sent.challenge}: {submission_id}.")


@click.command("publish-scores")
@click.argument("submission_id", metavar="SUBMISSION")
@click.option("--dry-run", is_flag=True, help="Only show what would change.")
@json_option
def publish_scores(submission_id: str, dry_run: bool) -> None:
    """Write the scores of your SUBMISSION to its model's card on the hub, as evaluation results.

    Needs write access with your token: HF_TOKEN, or that of `collidium login`. Earlier scores of the same
    leaderboard are replaced; the rest of the card is unchanged.

    \b
    collidium publish-scores 0123456789abcdef0123456789abcdef --dry-run
    collidium publish-scores 0123456789abcdef0123456789abcdef
    """
    import asyncio
    from difflib import unified_diff

    from collidium.client import model_scores
    from collidium.hub import offline

    offline.require_online("publishing scores")
    with client() as server:
        sent = server.submission(submission_id)
        if sent.hub_username != (caller := server.me().hub_username):
            raise Forbidden(f"the submission belongs to {sent.hub_username}, your token to {caller}")
        result = model_scores.result_of(sent, server.challenge(sent.challenge), server.backend)
    change = asyncio.run(
        model_scores.publish_scores(hub_client(), sent.model_repo or "", result, dry_run=dry_run)
    )
    lines = change.before.splitlines(), change.after.splitlines()
    diff = list(unified_diff(*lines, "before", "after", lineterm=""))

    def print_diff(_: object) -> None:
        for line in diff:
            click.echo(printable(line))
        done = "would be written" if dry_run else "are written"
        note(
            f"The scores {done} to the card of {change.model_repo}." if diff else "The card has these scores."
        )

    record = {"model_repo": change.model_repo, "changed": bool(diff), "result": result, "diff": diff}
    show_value(record, print_diff)


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
    help="Instead of FILE: an ONNX model for the server to run; or a model repository with model.onnx and "
    "manifest.toml, which the submission is then linked to.",
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
) -> None:
    """Submit FILE, a parquet file of predictions, to TASK; or a model that the server runs.

    Submitting the same file again returns the first result, and links the model if none was linked; the exit
    code is 1 if that submission is unranked, for example withdrawn. The same command resumes an interrupted
    upload within a day. `collidium link` changes links later. `collidium check` checks a file without
    submitting it.

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
            show_evaluation(server, sent, wait=wait)
            return
        if file is None:
            receipt = server.submit_from_hub(task, from_hub or "", model_repo)
        else:
            with progress_bar(f"Sending {file.name}", "Scoring", sizes=True) as progress:
                receipt = server.submit(task, file, model_repo, progress)
        show_value(receipt, lambda receipt: _print_receipt(receipt, _metrics_of(server, task)))
        if not json_wanted():
            with suppress(CollidiumError):  # the file is submitted, whether or not the quota can be shown
                note(quota_text(server.quota(task)))
    ctx.exit(1 if receipt.deduplicated and receipt.unranked else 0)


def _print_receipt(receipt: Receipt, metrics: tuple[Metric, ...]) -> None:
    print_score_table(receipt, metrics)
    print_record(
        {
            "submission": receipt.submission_id,
            "model": presented.model_text(receipt),
            "credits earned": receipt.credits_earned,
            "rows": receipt.rows,
            "scorer, truth": (receipt.scorer_version, receipt.truth_version),
        }
    )
    if receipt.deduplicated:
        note(
            f"This file was submitted before and is unranked: {receipt.unranked}."
            if receipt.unranked
            else "This file was submitted before; this is its result."
        )
    elif receipt.unranked:
        note(f"The submission is unranked: {receipt.unranked}.")
    if receipt.practice:
        note(f"This leaderboard is {receipt.practice}.")
    for warning in receipt.warnings:
        note(f"Warning: {warning}")


@click.command()
@click.argument("task", shell_complete=complete_tasks)
@click.argument("file", type=EXISTING_FILE)
@json_option
def check(task: str, file: Path) -> None:
    """Check FILE, a parquet file of predictions, for TASK on the server, without submitting it.

    Lists every problem with column, event and example rows.

    \b
    collidium check tracking predictions.parquet
    """
    click.get_current_context().find_root().obj.check = None
    with client() as server, progress_bar(f"Sending {file.name}", "Checking", sizes=True) as progress:
        checked = server.check(task, file, progress)
    show_message(checked, f"{file.name} is valid: {checked.rows} rows.")
    for warning in () if json_wanted() else checked.warnings:
        note(f"Warning: {warning}")


#: Value of `--remove` -> field.
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
) -> None:
    """Set the links of your SUBMISSION; other links are unchanged.

    The server asks the hub with your token whether the model's repository belongs to you or your
    organisation (verified), belongs to another account (unverified), or is not visible to you (missing).
    Setting a link again repeats the check.

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
        sent = server.set_links(submission, **links)
    rows = {"model": presented.model_text(sent), "code": sent.code_url, "paper": sent.paper_url}
    show_record(sent, rows)
