"""Publish scores on the card of a model, in the hub's evaluation results format.

The user's token writes them: a server needs no right there. Other entries bypass ``EvalResult``, which would
drop what it does not know.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from collidium.datasets.cards import CARD, card, split_card
from collidium.errors import Conflict, InvalidInput, NotFound
from collidium.hub.client import Hub, hub_failures
from collidium.records import Challenge, Submission

if TYPE_CHECKING:
    from huggingface_hub import HfApi


@dataclass(frozen=True, slots=True)
class CardChange:
    """The card of a model before and after scores were written; both are equal if nothing changed."""

    model_repo: str
    before: str
    after: str


def result_of(submission: Submission, challenge: Challenge, backend: str) -> dict[str, Any]:
    """Return an entry of a card's ``model-index`` with the scores of a submission.

    Raises Conflict if the submission has no model or no rank.
    """
    from huggingface_hub import EvalResult
    from huggingface_hub.repocard_data import eval_results_to_model_index

    if submission.model_repo is None:
        raise Conflict("the submission names no model: collidium link --model-repo NAMESPACE/NAME")
    if submission.unranked is not None:
        raise Conflict(f"the submission has no rank: {submission.unranked}")
    task = challenge.card
    assert task is not None  # noqa: S101 -- by the call
    data, events = task.evaluation_data, task.eval_events
    results = [
        EvalResult(
            task_type=task.name,
            task_name=task.title,
            dataset_type=data.repository if data else task.dataset,
            dataset_name=challenge.title,
            dataset_config=task.dataset,
            dataset_split="test",
            dataset_revision=data.revision if data else None,
            dataset_args={
                "events": f"{events.start}:{events.stop}",
                "scorer_version": submission.scorer_version,
                "truth_version": submission.truth_version,
            },
            metric_type=metric.name,
            metric_name=metric.title or metric.name,
            metric_value=submission.scores[metric.name],
            metric_args={"standard_error": submission.uncertainties.get(metric.name)},
            source_name=f"Collidium: {challenge.title}",
            source_url=f"{backend}/leaderboard/{challenge.name}#s-{submission.submission_id}",
        )
        for metric in task.metrics
        if metric.name in submission.scores
    ]
    entry: dict[str, Any] = eval_results_to_model_index("", results)[0]["results"][0]
    return entry


def with_result(text: str, name: str, result: Mapping[str, Any]) -> str:
    """Return the card with a result, which replaces an earlier one of the same leaderboard.

    Raises UnusableDataset for unreadable front matter, and InvalidInput for an invalid ``model-index``.
    """
    matter, body = split_card(text)
    models = matter.setdefault("model-index", [{"name": name, "results": []}])
    try:
        results = models[0]["results"]
        places = [place for place, other in enumerate(results) if _board(other) == _board(result)]
        if places:
            results[places[0]] = result
        else:
            results.append(result)
    except (TypeError, KeyError, IndexError, AttributeError):
        raise InvalidInput(f"the model-index of {name} is not as the hub has it") from None
    return card(matter, body or f"# {name}\n")


def _board(result: Mapping[str, Any]) -> str | None:
    url = (result.get("source") or {}).get("url")
    return url.partition("#")[0] if isinstance(url, str) else None


async def publish_scores(
    hub: Hub, model_repo: str, result: Mapping[str, Any], *, dry_run: bool
) -> CardChange:
    """Write a result to the card of a model; with ``dry_run``, only return the change.

    Raises what :func:`with_result` raises, NotFound if the token's owner sees no such model, Forbidden if
    they may not write to it, and Conflict if the card changes at the same time.
    """
    with hub_failures(hub.endpoint):
        found = await hub.ask(lambda api: _read(api, model_repo))
    if found is None:
        raise NotFound(f"{hub.endpoint} has no model {model_repo} that your token sees")
    head, before = found
    after = with_result(before, model_repo.rpartition("/")[2], result)
    if after != before and not dry_run:
        with hub_failures(hub.endpoint):
            await hub.ask(
                lambda api: api.upload_file(
                    path_or_fileobj=after.encode(),
                    path_in_repo=CARD,
                    repo_id=model_repo,
                    commit_message="Scores on Collidium",
                    parent_commit=head,
                )
            )
    return CardChange(model_repo, before, after)


def _read(api: HfApi, model_repo: str) -> tuple[str | None, str] | None:
    """Return the latest commit and its card; None if there is no such repository."""
    if not api.repo_exists(model_repo):
        return None
    head = api.model_info(model_repo).sha
    if not api.file_exists(model_repo, CARD, revision=head):
        return head, ""
    with TemporaryDirectory() as directory:
        path = api.hf_hub_download(model_repo, CARD, revision=head, local_dir=directory)
        return head, Path(path).read_text("utf-8")
