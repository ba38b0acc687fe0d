"""Publishes a dataset of a directory as a repository of a hub: checked first, then whole or not at all.

Safe to repeat: contents that the hub has are not sent again, and what is published already makes no new
commit. A repository that holds anything but what was published this way is never written to.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
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
from collidium.hub.publishing import Contents, Target
from collidium.runtime.failpoints import reached
from collidium.runtime.waiting import entered_in_thread, in_thread

if TYPE_CHECKING:
    from huggingface_hub import CommitOperationAdd

#: Files that are sent at a time.
UPLOADS: Final = 4
#: A larger manifest is none of ours.
_MANIFEST_BYTES: Final = 32 * 1024**2


@dataclass(frozen=True, slots=True)
class Published:
    """What stands in the repository now."""

    repo: str
    url: str
    #: The commit, 40 hexadecimal digits.
    revision: str
    tag: str | None
    #: False where all of it was there already.
    changed: bool
    private: bool
    configs: Sequence[ConfigFiles]
    #: Parquet files of the directory that belong to no table.
    left_out: Sequence[str]
    #: What the publisher should know.
    notes: Sequence[str]


async def publish(publication: Publication, hub: Hub, report: ReportProgress | None = None) -> Published:
    """Check the dataset, send it, show it in one commit, and tag that.

    ``report`` is called from other threads with the step (``checking``, ``withholding``, ``sending``), how
    much of it is done, and how much there is in all.

    Raises UnusableDataset with everything that is wrong with the dataset; Conflict for a repository or tag of
    something else, and for truth that was published before; Unauthenticated, Forbidden, Unreachable,
    Unavailable and UpstreamError as the hub answers. Then nothing is seen of it on the hub.
    """
    if not hub.token:
        raise Unauthenticated(f"publishing needs your token of the hub {hub.endpoint}")
    with hub_failures(hub.endpoint):
        target = Target(hub, await _full_name(publication.repo, hub), publication.private)
        async with entered_in_thread(_scratch(publication.withholding)) as scratch:
            return await _Publishing(publication, target, scratch, report or (lambda *_: None)).run()


@contextmanager
def _scratch(withholding: Withholding | None) -> Iterator[Path]:
    """A directory for intermediate files: next to the truth, where there is room for as much as the data."""
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
    target: Target
    scratch: Path
    report: ReportProgress

    async def run(self) -> Published:
        there = await self._look()
        old = _refuse_unless_ours(there, self.target)
        tag = self.publication.tag
        await publishing.refuse_tag_of_older(tag, there, self.target)
        prepared = await in_thread(lambda: prepare(self.publication, self.scratch, self.report), "publishing")
        configs = [with_history(config, old) for config in prepared.configs]
        platform_tag = self.publication.platform_tag
        made = make_version(self.target.repo, configs, old, readme=prepared.readme, platform_tag=platform_tag)
        if there is not None and _stands(made, there):
            revision, changed = there.head, False
        else:
            await publishing.refuse_known_tag(tag, there, self.target)
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
        return await publishing.look(self.target, self.scratch, MANIFEST, _MANIFEST_BYTES)

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
        """Send what the repository lacks and show the version in one commit, which is returned."""
        known = {file for config in old.values() for file in config.files if _is_there(file, there)}
        lacking = {file: path for file, path in files.items() if file not in known}
        additions = await _send(lacking, self.target, self.report)
        reached("publish.uploaded")
        texts = {CARD: made.card, MANIFEST: made.manifest}
        removed = [path for path in made.removed if path in there.files]
        title = self.publication.message or f"Publish {', '.join(_configs_of(files))}"
        try:
            return await publishing.commit(self.target, there.head, title, additions, texts, removed)
        except HubUnavailable:
            # An answer that got lost, or another process that was faster with the same.
            now = await self._look()
            if now is None or not _stands(made, now):
                raise
            return now.head


# -- the repository -------------------------------------------------------------------------------------


async def _full_name(repo: str, hub: Hub) -> str:
    owner = await hub.ask(lambda api: str(api.whoami()["name"]))  # refuses a bad token before any work
    return repo if "/" in repo else f"{owner}/{repo}"


def _refuse_unless_ours(there: Contents | None, target: Target) -> Mapping[str, ConfigFiles]:
    """The configs that were published there before. Raises Conflict for a repository of anything else."""
    if there is None:
        return {}
    if target.private and not there.private:
        raise Conflict(f"the dataset {target.repo} was to be private, but is there already and public")
    old = None if there.manifest is None else read_manifest(there.manifest)
    if old is None and there.files:
        raise Conflict(
            f"the hub has a dataset {target.repo} already that was not published this way: choose another "
            "name, or delete it there first"
        )
    return old or {}


def _stands(made: DatasetVersion, there: Contents) -> bool:
    """Whether the repository holds the version; its owner may have deleted files."""
    return there.manifest == made.manifest and all(_is_there(file, there) for file in made.files)


def _is_there(file: DatasetFile, there: Contents) -> bool:
    return there.files.get(file.path) == file.size_bytes


def _configs_of(files: Iterable[DatasetFile]) -> list[str]:
    return list(layout.configs(file.path for file in files))


async def _send(
    files: Mapping[DatasetFile, Path], target: Target, report: ReportProgress
) -> list[CommitOperationAdd]:
    total = sum(file.size_bytes for file in files)
    sent = dict.fromkeys(files, 0)
    slots = asyncio.Semaphore(UPLOADS)
    report("sending", 0, total)

    def watch(file: DatasetFile) -> Callable[[int], None]:
        def count(done: int) -> None:
            sent[file] = done
            report("sending", sum(sent.values()), total)

        return count

    async def send(file: DatasetFile, path: Path) -> CommitOperationAdd:
        async with slots:
            count = watch(file)
            addition = await publishing.upload(target, file.path, path, file.size_bytes, count)
            if addition.upload_info.sha256.hex() != file.sha256:
                raise UnusableDataset(f"{path} was changed while it was being published")
            count(file.size_bytes)
        return addition

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(send(file, path)) for file, path in files.items()]
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None  # the others were cancelled
    return [task.result() for task in tasks]


# -- truth that a repository has published: its history keeps what any version of it had -----------------


def with_history(new: ConfigFiles, old: Mapping[str, ConfigFiles]) -> ConfigFiles:
    """The config with all events whose truth any version published.

    Raises Conflict where events are withheld whose truth was published before, and where truth would be
    published that was withheld before.
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
    """The events of the config that have their truth."""
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
