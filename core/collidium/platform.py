"""The running platform: settings, plugins, and the components that the settings select."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from collidium import database, plugins, records
from collidium.accounts.identities import Identities
from collidium.contracts.executor import Executor
from collidium.contracts.pipeline import Pipeline
from collidium.contracts.runner import Runner
from collidium.contracts.storage import Storage, StorageUnavailable
from collidium.contracts.task import Task
from collidium.errors import ConfigurationError
from collidium.event_display import EventDisplay
from collidium.files import data_directory
from collidium.hub import offline
from collidium.hub.cards import RepoCards
from collidium.hub.models import ModelZoo
from collidium.plugins import Plugins, Provided
from collidium.runtime import metrics
from collidium.runtime.watching import Watching
from collidium.scoring.truth.cache import TruthCache
from collidium.secrets import Secrets, open_secrets
from collidium.sessions import Sessions
from collidium.truth.evaluated import Comparisons, comparisons
from collidium.truth.sketches import SketchCache

if TYPE_CHECKING:
    from collidium.settings import Settings

#: How long the platform waits for observing plugins when it closes.
OBSERVERS_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class Platform:
    """The components of a process, which domain functions work with."""

    settings: Settings
    plugins: Plugins
    tasks: Provided[Task]
    identities: Identities
    storage: Storage
    executor: Executor
    #: Requests are followed on the runner that accepted them.
    runners: Provided[Runner]
    #: The runner of new requests.
    runner: Runner
    #: The pipeline of the jobs' command; None if it names none.
    pipeline: Pipeline | None
    secrets: Secrets
    sessions: Sessions
    model_zoo: ModelZoo
    event_display: EventDisplay
    truth_cache: TruthCache
    sketches: SketchCache
    comparisons: Comparisons
    repo_cards: RepoCards
    watching: Watching = field(default_factory=lambda: Watching(records.encode))

    @property
    def pipeline_version(self) -> str:
        """The version of the pipeline that simulates new requests."""
        return self.settings.pipeline_version or (self.pipeline.version if self.pipeline else "")

    @classmethod
    @asynccontextmanager
    async def open(cls, settings: Settings, loaded: Plugins | None = None) -> AsyncIterator[Platform]:
        """Connect the database, create the components that the settings select, and close them at the end.

        ``loaded`` are the plugins of this process, if they are already loaded.

        Built-in tasks that are new are listed by :func:`collidium.challenges.tasklist.open_platform`.

        The embedded SQLite database is migrated automatically; others are migrated by their operator. Raises
        :class:`~collidium.errors.ConfigurationError` for an unknown schema, for a component that is not
        installed, and for missing settings that machines with a common database must share.
        """
        if missing := settings.missing_to_share():
            raise ConfigurationError(f"several machines may share PostgreSQL: {'; '.join(missing)}")
        offline.ignore()  # its hub is a setting
        await asyncio.to_thread(data_directory.prepare, settings)
        loaded = loaded or plugins.load(settings.plugins_blocked)
        runners = loaded.runners(settings)
        executor = loaded.executors(settings).get(settings.executor)
        storage = loaded.storages(settings).get(settings.storage)
        operations = ("put", "get", "put_final", "get_final", "exists", "delete")
        metrics.measure(storage, operations, StorageUnavailable)
        secrets = await asyncio.to_thread(open_secrets, settings)
        providers = loaded.identity_providers(settings)
        platform = cls(
            settings=settings,
            plugins=loaded,
            tasks=loaded.tasks(),
            identities=Identities(
                providers.get(settings.identity), settings, others=providers.things.values()
            ),
            storage=storage,
            truth_cache=TruthCache(storage, settings.data_dir / "truth", settings.truth_cache_bytes),
            sketches=SketchCache(storage, settings.data_dir / "sketches"),
            comparisons=comparisons(),
            executor=executor,
            runners=runners,
            runner=runners.get(settings.runner_name),
            pipeline=pipeline_of_command(settings, loaded),
            secrets=secrets,
            sessions=Sessions(settings, secrets),
            model_zoo=ModelZoo(settings.hub, settings.tag),
            event_display=EventDisplay(settings, executor),
            repo_cards=RepoCards(settings.hub, settings.tag),
        )
        async with database.opened(settings):
            try:
                yield platform
            finally:
                await asyncio.to_thread(loaded.observers.finish, OBSERVERS_SECONDS)
                for part in (
                    *(platform.comparisons, platform.event_display, platform.executor, platform.identities),
                    *(platform.truth_cache, platform.sketches, platform.storage),
                    *(platform.model_zoo, platform.repo_cards),
                ):
                    await part.close()
                for runner in runners.things.values():
                    await runner.close()


def pipeline_of_command(settings: Settings, loaded: Plugins) -> Pipeline | None:
    """Return the installed pipeline that the jobs' command names with ``--pipeline``.

    It has no variations unless the command passes ``{vary}`` on.
    """
    try:
        words = shlex.split(settings.pipeline_command)
    except ValueError:  # runners report it
        return None
    named = next((name for option, name in pairwise(words) if option == "--pipeline"), "")
    pipeline = loaded.pipelines().things.get(named)
    if pipeline is None or "{vary}" in settings.pipeline_command:
        return pipeline
    return replace(pipeline, variations=())
