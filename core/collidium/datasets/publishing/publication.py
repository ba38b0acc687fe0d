"""Publishes a local dataset as a repository of a hub, in one commit.

Publishing is idempotent: files that the hub has are not uploaded again, and an unchanged dataset makes no
commit. A repository that was not published this way is never modified.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from collidium.contracts.task import EventRange
from collidium.datasets import layout
from collidium.datasets.cards import CARD, MANIFEST, DatasetFile
from collidium.datasets.publishing.preparing import Publication, ReportProgress, Withholding, prepare
from collidium.datasets.publishing.version import ConfigFiles, DatasetVersion, make_version, read_manifest
from collidium.errors import Conflict, Unauthenticated, UnusableDataset
from collidium.files.held import work_directory
from collidium.hub import publishing
from collidium.hub.client import Hub, HubContested, HubUnavailable, hub_failures
from collidium.hub.publishing import Contents, PublishingTarget
from collidium.runtime.failpoints import reached
from collidium.runtime.waiting import entered_in_thread, in_thread

if TYPE_CHECKING:
    from huggingface_hub import CommitOperationAdd

#: Files uploaded concurrently.
UPLOADS: Final = 4
#: Larger manifests are not read.
_MANIFEST_BYTES: Final = 32 * 1024**2


@dataclass(frozen=True, slots=True)
class Published:
    """The published state of a repository."""

    repo: str
    url: str
    #: The commit, 40 hexadecimal digits.
    revision: str
    tag: str | None
    #: False if it was published already.
    changed: bool
    private: bool
    configs: Sequence[ConfigFiles]
    #: Parquet files of the directory that belong to no table.
    left_out: Sequence[str]
    #: Notes to the publisher.
    notes: Sequence[str]


async def publish(publication: Publication, hub: Hub, report: ReportProgress | None = None) -> Published:
    """Check and upload a dataset, publish it in one commit, and tag the commit.

    ``report`` is called from other threads with the step (``checking``, ``withholding``, ``sending``), how
    much of it is done, and the total.

    Raises UnusableDataset with all problems of the dataset; Conflict if the repository or tag exists with
    other content, or the truth was published before; Unauthenticated, Forbidden, Unreachable, Unavailable and
    UpstreamError as the hub responds. After an error the content of the repository is unchanged.
    """
    if not hub.token:
        raise Unauthenticated(f"publishing needs your token of the hub {hub.endpoint}")
    with hub_failures(hub.endpoint):
        target = PublishingTarget(hub, await _full_name(publication.repo, hub), publication.private)
        async with entered_in_thread(_scratch(publication.withholding)) as scratch:
            return await _Publishing(publication, target, scratch, report or (lambda *_: None)).run()


@contextmanager
def _scratch(withholding: Withholding | None) -> Iterator[Path]:
    """A directory for intermediate files; next to the truth if any is withheld, as they are as large."""
    if withholding is None:
        with tempfile.TemporaryDirectory(prefix="collidium-") as name:
            yield Path(name)
        return
    place = withholding.truth.absolute()
    with work_directory(place.with_name(f".{place.name}.work")) as directory:
        yield directory


@dataclass(frozen=True, slots=True)
class _Publishing:
    publication: Publication
    target: PublishingTarget
    scratch: Path
    report: ReportProgress

    async def run(self) -> Published:
        there = await self._look()
        old = _published_configs(there, self.target)
        tag = self.publication.tag
        await publishing.check_tag(tag, there, self.target)
        prepared = await in_thread(lambda: prepare(self.publication, self.scratch, self.report), "publishing")
        configs = [with_history(config, old) for config in prepared.configs]
        platform_tag = self.publication.platform_tag
        made = make_version(
            self.target.repo,
            configs,
            old,
            readme=prepared.readme,
            platform_tag=platform_tag,
            hub=self.target.hub.endpoint,
        )
        if there is not None and _has_version(there, made):
            revision, changed = there.head, False
        else:
            await publishing.check_new_tag(tag, there, self.target)
            there = there or await self._created()
            reached("publish.created")
            revision, changed = await self._write(prepared.files, made, there, old), True
            reached("publish.published")
        if tag is not None:
            await publishing.put_tag(tag, revision, self.target)
        return Published(
            repo=self.target.repo,
            url=self.target.url,
            revision=revision,
            tag=tag,
            changed=changed,
            private=there.private,
            configs=configs,
            left_out=prepared.left_out,
            notes=prepared.notes,
        )

    async def _look(self) -> Contents | None:
        return await publishing.read_repository(self.target, self.scratch, MANIFEST, _MANIFEST_BYTES)

    async def _created(self) -> Contents:
        made = await publishing.open_repository(self.target, self.scratch, MANIFEST, _MANIFEST_BYTES)
        if made.files:
            raise HubContested(f"another process made the dataset {self.target.repo} at the same time")
        return made

    async def _write(
        self,
        files: Mapping[DatasetFile, Path],
        made: DatasetVersion,
        there: Contents,
        old: Mapping[str, ConfigFiles],
    ) -> str:
        """Upload the missing files and commit the version; returns the commit."""
        known = {file for config in old.values() for file in config.files if _is_there(file, there)}
        lacking = {file: path for file, path in files.items() if file not in known}
        additions = await _upload(lacking, self.target, self.report)
        reached("publish.uploaded")
        texts = {CARD: made.card, MANIFEST: made.manifest}
        removed = [path for path in made.removed if path in there.files]
        configs = layout.configs(file.path for file in files)
        title = self.publication.message or f"Publish {', '.join(configs)}"
        try:
            return await publishing.commit(self.target, there.head, title, additions, texts, removed)
        except HubUnavailable:
            # The response was lost, or another process has published the same.
            now = await self._look()
            if now is None or not _has_version(now, made):
                raise
            return now.head


# -- the repository -------------------------------------------------------------------------------------


async def _full_name(repo: str, hub: Hub) -> str:
    owner = await hub.ask(lambda api: str(api.whoami()["name"]))  # rejects an invalid token before any work
    return repo if "/" in repo else f"{owner}/{repo}"


def _published_configs(there: Contents | None, target: PublishingTarget) -> Mapping[str, ConfigFiles]:
    """The configs of a repository. Raises Conflict if it was not published this way."""
    if there is None:
        return {}
    if target.private and not there.private:
        raise Conflict(f"the dataset {target.repo} was to be private, but exists and is public")
    old = None if there.manifest is None else read_manifest(there.manifest)
    if old is None and there.files:
        raise Conflict(
            f"the hub has a dataset {target.repo} already that was not published this way: choose another "
            "name, or delete it there first"
        )
    return old or {}


def _has_version(there: Contents, made: DatasetVersion) -> bool:
    """Whether the repository has the version with all of its files: its owner may have deleted some."""
    return there.manifest == made.manifest and all(_is_there(file, there) for file in made.files)


def _is_there(file: DatasetFile, there: Contents) -> bool:
    return there.files.get(file.path) == file.size_bytes


async def _upload(
    files: Mapping[DatasetFile, Path], target: PublishingTarget, report: ReportProgress
) -> list[CommitOperationAdd]:
    total = sum(file.size_bytes for file in files)
    sent = dict.fromkeys(files, 0)
    slots = asyncio.Semaphore(UPLOADS)
    report("sending", 0, total)

    def count(file: DatasetFile, done: int) -> None:
        sent[file] = done
        report("sending", sum(sent.values()), total)

    async def send(file: DatasetFile, path: Path) -> CommitOperationAdd:
        async with slots:
            addition = await publishing.upload(target, file.path, path, file.size_bytes, partial(count, file))
            if addition.upload_info.sha256.hex() != file.sha256:
                raise UnusableDataset(f"{path} was changed while it was being published")
            count(file, file.size_bytes)
        return addition

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(send(file, path)) for file, path in files.items()]
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None  # the others were cancelled
    return [task.result() for task in tasks]


# -- truth that a repository has published: its history keeps all versions -------------------------------


def with_history(new: ConfigFiles, old: Mapping[str, ConfigFiles]) -> ConfigFiles:
    """Add the events whose truth any version published.

    Raises Conflict if truth to withhold was published before, or truth to publish was withheld before.
    """
    before = old.get(new.name)
    opened = [] if before is None else [EventRange.parse(events) for events in before.opened]
    withheld = None if new.withheld is None else EventRange.parse(new.withheld)
    if withheld is not None and any(withheld.overlaps(events) for events in opened):
        raise Conflict(
            f"the truth of events {withheld} of {new.name} cannot be withheld any more: a version of the "
            "repository shows it to everyone; publish under a new name"
        )
    if before is not None and before.withheld is not None:
        closed = EventRange.parse(before.withheld)
        if withheld is None or withheld.start > closed.start or withheld.stop < closed.stop:
            raise Conflict(
                f"the truth of events {closed} of {new.name}, withheld in the repository, would be "
                f"published: add --withhold-truth {closed}, or publish under a new name"
            )
    ranges = _merged([*opened, *_opened(new, withheld)])
    return replace(new, opened=[str(events) for events in ranges])


def _opened(config: ConfigFiles, withheld: EventRange | None) -> Sequence[EventRange]:
    """The events of the config with truth."""
    if not config.events:
        return ()
    first, stop = config.first_event, config.last_event + 1
    if withheld is None:
        return (EventRange(first, stop),)
    edges = ((first, withheld.start), (withheld.stop, stop))
    return [EventRange(a, b) for a, b in edges if a < b]


def _merged(ranges: Iterable[EventRange]) -> list[EventRange]:
    merged: list[EventRange] = []
    for events in sorted(ranges, key=lambda events: events.start):
        if merged and events.start <= merged[-1].stop:
            merged[-1] = EventRange(merged[-1].start, max(merged[-1].stop, events.stop))
        else:
            merged.append(events)
    return merged
