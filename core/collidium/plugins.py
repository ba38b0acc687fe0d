"""Loads plugins entry point by entry point, keeps what they bring, notifies them, reports what went wrong.

A broken plugin never stops the rest: it is recorded with name, distribution and error, shown by ``collidium
plugin list`` and ``/readyz``, and asking for what it should have brought raises. Each is notified of events
in a thread of its own: none delays a request, or another plugin.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib.metadata import Distribution, EntryPoint, entry_points
from opcode import opmap
from queue import Full, Queue
from threading import Thread
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

import pluggy

from collidium import hookspecs
from collidium.errors import ConfigurationError, NotFound
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

#: Events that may wait for one plugin; more than a healthy one ever lets wait.
MAX_WAITING: Final = 1000


@dataclass(frozen=True, slots=True)
class PluginRecord:
    """One entry point and what became of it."""

    name: str
    distribution: str
    version: str
    #: ``loaded``, ``blocked`` or ``failed``.
    state: str
    error: str | None = None


class Named(Protocol):
    """A thing that settings choose by its name."""

    @property
    def name(self) -> str: ...


T = TypeVar("T")


@dataclass(slots=True)
class Provided(Generic[T]):
    """Things of one kind by name, each with the plugin that brought it."""

    kind: str
    #: The variable that chooses one of them by its name, if one does.
    setting: str = ""
    things: dict[str, T] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)
    #: The distributions that these plugins came with.
    distributions: dict[str, str] = field(default_factory=dict)
    #: What went wrong while loading, a line each: the thing asked for may be missing for it.
    failures: list[str] = field(default_factory=list)

    def find(self, name: str) -> T:
        """The thing of that name, for a user's choice; raises NotFound that names those there are."""
        if name not in self.things:
            known = ", ".join(sorted(self.things)) or "none"
            raise NotFound(f"no installed plugin brings a {self.kind} {name!r} (installed: {known})")
        return self.things[name]

    def get(self, name: str) -> T:
        """The thing of that name, for a setting; raises ConfigurationError that names those there are."""
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
        self._refuse_unknown_hooks()

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
                self._refuse_wrappers(point.name)
            if self.records[point.name].state == "failed" and self.manager.has_plugin(point.name):
                self.manager.unregister(name=point.name)

    def _refuse_wrappers(self, name: str) -> None:
        """Raise TypeError for a hook wrapper: implementations are called alone, with nothing to wrap."""
        for hook in self.manager.get_hookcallers(self.manager.get_plugin(name)) or ():
            for implementation in hook.get_hookimpls():
                if implementation.plugin_name == name and (
                    implementation.wrapper or implementation.hookwrapper
                ):
                    raise TypeError(
                        f"{hook.name} is a hook wrapper; write a plain @hookimpl that returns a list"
                    )

    def _refuse_unknown_hooks(self) -> None:
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
        """Make anything that is raised within a failure of the plugin of that name, and of nothing else.

        Logs and records it, after ``what`` was attempted. Ctrl-C is raised.
        """
        try:
            yield
        except BaseException as error:
            if _is_interrupt(error):
                raise
            logger.exception("plugin %s failed%s", name, what and f" in {what}")
            reason = f"{type(error).__name__}: {message_of(error)}"
            self.fail(name, f"{what}: {reason}" if what else reason)

    def fail(self, name: str, error: str) -> None:
        """Record that a loaded plugin failed later, in addition to what it failed with before."""
        old = self.records[name]
        if old.error is not None:
            error = old.error if error in old.error else f"{old.error}; {error}"
        self.records[name] = replace(old, state="failed", error=error)

    @property
    def failures(self) -> list[str]:
        """What an operator should know, a line each."""
        broken = [
            f"plugin {record.name!r} of {record.distribution}: {record.error}"
            for record in self.records.values()
            if record.state == "failed"
        ]
        return broken + self.clashes

    # -- what plugins bring ---------------------------------------------------------------------------

    def tasks(self) -> Provided[Task]:
        return self._provided(Provided("task"), "collidium_tasks", lambda task: task.card.name)

    def baselines(self) -> Provided[Baseline]:
        """By task and name: ``tracking/ckf``."""
        kind = Provided[Any]("baseline")
        return self._provided(kind, "collidium_baselines", lambda one: f"{one.task}/{one.name}")

    def runners(self, settings: Settings) -> Provided[Runner]:
        return self._provided(_chosen("runner"), "collidium_runners", _name, settings=settings)

    def storages(self, settings: Settings) -> Provided[Storage]:
        return self._provided(_chosen("storage"), "collidium_storages", _name, settings=settings)

    def identity_providers(self, settings: Settings) -> Provided[IdentityProvider]:
        kind = Provided[Any]("identity provider", "PLATFORM_IDENTITY")
        return self._provided(kind, "collidium_identity_providers", _name, settings=settings)

    def executors(self, settings: Settings) -> Provided[Executor]:
        return self._provided(_chosen("executor"), "collidium_executors", _name, settings=settings)

    def pipelines(self) -> Provided[Pipeline]:
        return self._provided(Provided("pipeline"), "collidium_pipelines", _name)

    def blueprints(self, settings: Settings) -> Provided[Blueprint]:
        """By their ``url_prefix``; made once, as one that is mounted cannot be changed any more."""
        if self._blueprints is None:
            self._blueprints = self._provided(
                Provided("blueprint"), "collidium_blueprints", lambda b: b.url_prefix, settings=settings
            )
        return self._blueprints

    def commands(self) -> Provided[click.Command]:
        return self._provided(Provided("command"), "collidium_commands", _name)

    def screens(self) -> Provided[type[Screen[Any]]]:
        kind = Provided[Any]("screen")
        return self._provided(kind, "collidium_screens", lambda screen: screen.label)

    def announce(self, hook: str, **arguments: object) -> None:
        """Notify every plugin of an event, each in a thread, with a copy of ``arguments``.

        Returns at once. What a plugin raises is logged and stops no other.
        """
        for implementation in getattr(self.manager.hook, hook).get_hookimpls():
            values = deepcopy(_accepted(implementation, arguments))
            self.observers.notify(implementation.plugin_name, partial(implementation.function, **values))

    def _provided(
        self, provided: Provided[Any], hook: str, key: Callable[[Any], object], **arguments: object
    ) -> Provided[Any]:
        for implementation in getattr(self.manager.hook, hook).get_hookimpls():
            origin = implementation.plugin_name
            things: list[tuple[str, Any]] = []
            with self.isolated(origin, hook):
                things = [
                    (_text(key(thing), provided.kind), thing)
                    for thing in implementation.function(**_accepted(implementation, arguments))
                ]
            for name, thing in things:
                self._claim(provided, name, thing, origin)
        provided.failures = self.failures
        return provided

    def _claim(self, provided: Provided[Any], name: str, thing: Any, origin: str) -> None:
        if name not in provided.things:
            provided.things[name] = thing
            provided.origins[name] = origin
            if (record := self.records.get(origin)) is not None:  # not one that was registered by hand
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
    """Load every plugin of the installed distributions, the platform's own first."""
    points = entry_points(group=GROUP)
    own_first = sorted(points, key=lambda point: (not is_own(point), point.name, origin(point.dist)))
    return Plugins(own_first, blocked)


def is_own(point: EntryPoint) -> bool:
    """Whether the entry point belongs to the platform's own distribution."""
    return origin(point.dist)[0] == DISTRIBUTION


@cache
def origin(distribution: Distribution | None) -> tuple[str, str]:
    """Name and version of a distribution, each access to which would parse all its metadata."""
    return (distribution.name, distribution.version) if distribution else ("unknown", "")


def _name(thing: Named) -> str:
    return thing.name


def _chosen(kind: str) -> Provided[Any]:
    """Things of which the setting of that name chooses one."""
    return Provided(kind, f"PLATFORM_{kind.upper()}")


def _text(name: object, kind: str) -> str:
    if type(name) is not str or not name:
        raise TypeError(f"a {kind} is known by {name!r}, which is no name")
    return name


def _is_interrupt(error: BaseException) -> bool:
    """Whether it is Ctrl-C, which no ``raise`` statement has raised."""
    if not isinstance(error, KeyboardInterrupt) or (trace := error.__traceback__) is None:
        return False
    while trace.tb_next:
        trace = trace.tb_next
    return trace.tb_frame.f_code.co_code[trace.tb_lasti] != opmap["RAISE_VARARGS"]


def _accepted(implementation: Any, arguments: Mapping[str, object]) -> dict[str, object]:
    """The arguments that an implementation asks for: like pluggy, fewer than specified are fine."""
    return {name: arguments[name] for name in implementation.argnames}


class Observers:
    """The threads, by plugin; started with the first event."""

    def __init__(self) -> None:
        self._observers: dict[str, _Observer] = {}

    def notify(self, plugin: str, event: Callable[[], object]) -> None:
        """Run ``event`` soon; what it raises is logged, and so is an event that there is no time for."""
        if plugin not in self._observers:
            self._observers[plugin] = _Observer(plugin)
        self._observers[plugin].notify(event)

    def finish(self, seconds: float) -> None:
        """Wait for all events, for at most ``seconds``; what has not ended by then is left."""
        deadline = monotonic() + seconds
        observers = list(self._observers.values())
        self._observers.clear()
        for observer in observers:
            observer.stop(deadline)


class _Observer:
    """One plugin's thread: a daemon, as a plugin that never returns must not keep the process alive.

    asyncio's own threads would: the end of the loop waits for each of them.
    """

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
        with suppress(Full):  # logged below: the thread lives on
            self._events.put(None, timeout=max(0.0, deadline - monotonic()))
        self._thread.join(max(0.0, deadline - monotonic()))
        if self._thread.is_alive():
            logger.error("plugin %s still observes something and is left behind", self._plugin)

    def _run(self) -> None:
        for event in iter(self._events.get, None):
            try:
                event()
            except BaseException:
                # A third-party observer must not undo what has already been committed, nor miss what follows.
                logger.exception("plugin %s failed as an observer", self._plugin)
