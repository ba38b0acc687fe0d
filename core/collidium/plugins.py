"""Load plugins, collect what they provide, notify them of events, and report their failures.

A broken plugin does not affect others: its failure is recorded, ``collidium plugin list`` and ``/readyz``
report it, and selecting something that it should have provided raises. Each plugin is notified of events in
a thread of its own, so that it delays neither requests nor other plugins.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib.metadata import Distribution, EntryPoint, entry_points
from operator import attrgetter
from queue import Full, Queue
from threading import Thread
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import pluggy

from collidium import hookspecs
from collidium.errors import ConfigurationError, NotFound
from collidium.runtime.interrupts import Noting
from collidium.runtime.logs import message_of

if TYPE_CHECKING:
    import click
    from quart import Blueprint
    from textual.screen import Screen

    from collidium.contracts.executor import Executor
    from collidium.contracts.identity import IdentityProvider
    from collidium.contracts.pipeline import Pipeline
    from collidium.contracts.runner import Runner
    from collidium.contracts.storage import Storage
    from collidium.contracts.task import Baseline, Task
    from collidium.settings import Settings

logger = logging.getLogger(__name__)

#: The group of entry points that name plugins.
GROUP = "collidium"
#: The platform's own distribution.
DISTRIBUTION = "collidium"

#: Maximum number of queued events per plugin.
MAX_WAITING: Final = 1000


@dataclass(frozen=True, slots=True)
class PluginRecord:
    """An entry point and the result of loading it."""

    name: str
    distribution: str
    version: str
    #: ``loaded``, ``blocked`` or ``failed``.
    state: str
    error: str | None = None


T = TypeVar("T")


@dataclass(slots=True)
class Provided(Generic[T]):
    """Objects of one kind by name, with the plugins that provide them."""

    kind: str
    #: Environment variable that selects one of them by name, if any.
    setting: str = ""
    things: dict[str, T] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)
    #: The distributions of these plugins.
    distributions: dict[str, str] = field(default_factory=dict)
    #: Failures while loading, which may explain a missing object.
    failures: list[str] = field(default_factory=list)

    def find(self, name: str) -> T:
        """Return the object that a user named; raises NotFound, which lists the names."""
        if name not in self.things:
            known = ", ".join(sorted(self.things)) or "none"
            raise NotFound(
                f"no installed plugin provides a {self.kind} {name!r} (installed: {known}); a server has the "
                "plugins that were installed when it started"
            )
        return self.things[name]

    def get(self, name: str) -> T:
        """Return the object that a setting names; raises ConfigurationError, which lists the names."""
        try:
            return self.things[name]
        except KeyError:
            known = ", ".join(sorted(self.things)) or "none"
            failed = "".join(f"; {failure}" for failure in self.failures)
            setting = f"{self.setting}: " if self.setting else ""
            raise ConfigurationError(
                f"{setting}no {self.kind} named {name!r} is installed (there are: {known}){failed}"
            ) from None


class Plugins:
    """The plugins of this process."""

    def __init__(self, points: Iterable[EntryPoint], blocked: Sequence[str] = ()) -> None:
        self.manager = pluggy.PluginManager(hookspecs.PROJECT)
        self.manager.add_hookspecs(hookspecs)
        self.records: dict[str, PluginRecord] = {}
        self.clashes: list[str] = []
        self.observers = Observers()
        self._blueprints: Provided[Blueprint] | None = None
        for point in points:
            self._load(point, blocked)
        self._reject_unknown_hooks()

    def _load(self, point: EntryPoint, blocked: Sequence[str]) -> None:
        distribution, version = origin(point.dist)

        def record(state: str, error: str | None = None) -> None:
            self.records[point.name] = PluginRecord(point.name, distribution, version, state, error)

        if point.name in self.records:
            self.clashes.append(
                f"plugin {point.name!r} of {distribution} is refused: "
                f"{self.records[point.name].distribution} has a plugin of that name"
            )
            logger.error(self.clashes[-1])
        elif point.name in blocked:
            record("blocked")
        else:
            record("loaded")
            with self.isolated(point.name):
                self.manager.register(point.load(), name=point.name)
                self._reject_wrappers(point.name)
            if self.records[point.name].state == "failed" and self.manager.has_plugin(point.name):
                self.manager.unregister(name=point.name)

    def _reject_wrappers(self, name: str) -> None:
        """Raise TypeError for hook wrappers: implementations are called one by one."""
        for hook in self.manager.get_hookcallers(self.manager.get_plugin(name)) or ():
            for implementation in hook.get_hookimpls():
                if implementation.plugin_name == name and (
                    implementation.wrapper or implementation.hookwrapper
                ):
                    raise TypeError(
                        f"{hook.name} is a hook wrapper; write a plain @hookimpl that returns a list"
                    )

    def _reject_unknown_hooks(self) -> None:
        while True:
            try:
                self.manager.check_pending()
            except pluggy.PluginValidationError as error:
                name = self.manager.get_name(error.plugin)
                self.manager.unregister(error.plugin)
                if name is None:
                    raise
                logger.error("plugin %s implements a hook that does not exist: %s", name, error)
                self.fail(name, str(error))
            else:
                return

    @contextmanager
    def isolated(self, name: str, what: str = "") -> Iterator[None]:
        """Record any exception in the block as a failure of the plugin; only Ctrl-C is raised.

        ``what`` describes the operation for the log.
        """
        with Noting():
            try:
                yield
            except BaseException as error:  # a plugin may raise anything
                if Noting.is_interrupt(error):
                    raise
                logger.exception("plugin %s failed%s", name, what and f" in {what}")
                reason = f"{type(error).__name__}: {message_of(error)}"
                self.fail(name, f"{what}: {reason}" if what else reason)

    def fail(self, name: str, error: str) -> None:
        """Record a failure of a loaded plugin, in addition to earlier ones."""
        old = self.records[name]
        if old.error is not None:
            error = old.error if error in old.error else f"{old.error}; {error}"
        self.records[name] = replace(old, state="failed", error=error)

    @property
    def failures(self) -> list[str]:
        """Messages for operators, one line each."""
        broken = [
            f"plugin {record.name!r} of {record.distribution}: {record.error}"
            for record in self.records.values()
            if record.state == "failed"
        ]
        return broken + self.clashes

    # -- provided objects -----------------------------------------------------------------------------

    def tasks(self) -> Provided[Task]:
        return self._collect(Provided("task"), "collidium_tasks", lambda task: task.card.name)

    def baselines(self) -> Provided[Baseline]:
        """By task and name, for example ``tracking/ckf``."""
        kind = Provided[Any]("baseline")
        return self._collect(kind, "collidium_baselines", lambda one: f"{one.task}/{one.name}")

    def runners(self, settings: Settings) -> Provided[Runner]:
        return self._collect(_selectable("runner"), "collidium_runners", settings=settings)

    def storages(self, settings: Settings) -> Provided[Storage]:
        return self._collect(_selectable("storage"), "collidium_storages", settings=settings)

    def identity_providers(self, settings: Settings) -> Provided[IdentityProvider]:
        kind = Provided[Any]("identity provider", "PLATFORM_IDENTITY")
        return self._collect(kind, "collidium_identity_providers", settings=settings)

    def executors(self, settings: Settings) -> Provided[Executor]:
        return self._collect(_selectable("executor"), "collidium_executors", settings=settings)

    def pipelines(self) -> Provided[Pipeline]:
        return self._collect(Provided("pipeline"), "collidium_pipelines")

    def blueprints(self, settings: Settings) -> Provided[Blueprint]:
        """By ``url_prefix``. They are created once, because a mounted blueprint cannot change."""
        if self._blueprints is None:
            self._blueprints = self._collect(
                Provided("blueprint"), "collidium_blueprints", lambda b: b.url_prefix, settings=settings
            )
        return self._blueprints

    def commands(self) -> Provided[click.Command]:
        return self._collect(Provided("command"), "collidium_commands")

    def screens(self) -> Provided[type[Screen[Any]]]:
        kind = Provided[Any]("screen")
        return self._collect(kind, "collidium_screens", lambda screen: screen.label)

    def announce(self, hook: str, **arguments: object) -> None:
        """Notify all plugins of an event, each in its thread and with a copy of ``arguments``.

        Returns at once. Exceptions of plugins are logged.
        """
        for implementation in getattr(self.manager.hook, hook).get_hookimpls():
            values = deepcopy(_declared_arguments(implementation, arguments))
            self.observers.notify(implementation.plugin_name, partial(implementation.function, **values))

    def _collect(
        self,
        provided: Provided[Any],
        hook: str,
        key: Callable[[Any], object] = attrgetter("name"),
        **arguments: object,
    ) -> Provided[Any]:
        for implementation in getattr(self.manager.hook, hook).get_hookimpls():
            origin = implementation.plugin_name
            things: list[tuple[str, Any]] = []
            with self.isolated(origin, hook):
                things = [
                    (_checked_name(key(thing), provided.kind), thing)
                    for thing in implementation.function(**_declared_arguments(implementation, arguments))
                ]
            for name, thing in things:
                self._add(provided, name, thing, origin)
        provided.failures = self.failures
        return provided

    def _add(self, provided: Provided[Any], name: str, thing: Any, origin: str) -> None:
        if name not in provided.things:
            provided.things[name] = thing
            provided.origins[name] = origin
            if (record := self.records.get(origin)) is not None:  # not registered by an entry point
                provided.distributions[name] = record.distribution
            return
        clash = (
            f"{provided.kind} {name!r} of plugin {origin!r} is refused: "
            f"plugin {provided.origins[name]!r} brought one first"
        )
        if clash not in self.clashes:
            logger.error(clash)
            self.clashes.append(clash)


def load(blocked: Sequence[str] = ()) -> Plugins:
    """Load the plugins of all installed distributions, the platform's own first."""
    points = entry_points(group=GROUP)
    own_first = sorted(points, key=lambda point: (not is_own(point), point.name, origin(point.dist)))
    return Plugins(own_first, blocked)


def is_own(point: EntryPoint) -> bool:
    """Whether an entry point belongs to the platform's own distribution."""
    return origin(point.dist)[0] == DISTRIBUTION


@cache
def origin(distribution: Distribution | None) -> tuple[str, str]:
    """Return name and version of a distribution; cached, because each access parses its metadata."""
    return (distribution.name, distribution.version) if distribution else ("unknown", "")


def _selectable(kind: str) -> Provided[Any]:
    """Return a collection of objects from which the setting with that name selects one."""
    return Provided(kind, f"PLATFORM_{kind.upper()}")


def _checked_name(name: object, kind: str) -> str:
    if type(name) is not str or not name:
        raise TypeError(f"a {kind} is known by {name!r}, which is no name")
    return name


def _declared_arguments(implementation: Any, arguments: Mapping[str, object]) -> dict[str, object]:
    """Return the arguments that an implementation declares; as with pluggy, it may omit some."""
    return {name: arguments[name] for name in implementation.argnames}


class Observers:
    """Threads that notify plugins, one per plugin, started on the first event."""

    def __init__(self) -> None:
        self._observers: dict[str, _Observer] = {}

    def notify(self, plugin: str, event: Callable[[], object]) -> None:
        """Queue ``event`` for the plugin; its exceptions are logged, and so is a full queue."""
        if plugin not in self._observers:
            self._observers[plugin] = _Observer(plugin)
        self._observers[plugin].notify(event)

    def finish(self, seconds: float) -> None:
        """Wait up to ``seconds`` for all queued events."""
        deadline = monotonic() + seconds
        observers = list(self._observers.values())
        self._observers.clear()
        for observer in observers:
            observer.stop(deadline)


class _Observer:
    """The thread of one plugin: a daemon, so that a hanging plugin does not keep the process alive."""

    def __init__(self, plugin: str) -> None:
        self._plugin = plugin
        self._events: Queue[Callable[[], object] | None] = Queue(MAX_WAITING)
        self._thread = Thread(target=self._run, name=f"observer of {plugin}", daemon=True)
        self._thread.start()

    def notify(self, event: Callable[[], object]) -> None:
        try:
            self._events.put_nowait(event)
        except Full:
            logger.error("plugin %s is too slow an observer; it misses something", self._plugin)

    def stop(self, deadline: float) -> None:
        with suppress(Full):  # logged below
            self._events.put(None, timeout=max(0.0, deadline - monotonic()))
        self._thread.join(max(0.0, deadline - monotonic()))
        if self._thread.is_alive():
            logger.error("plugin %s still observes something and is left behind", self._plugin)

    def _run(self) -> None:
        for event in iter(self._events.get, None):
            try:
                event()
            except BaseException:
                # An observer must not affect what has been committed, nor miss later events.
                logger.exception("plugin %s failed as an observer", self._plugin)
