"""The hooks: the public contract between the platform and its plugins.

A plugin is a module (or object) named by an entry point of group ``collidium``. It implements any of the
functions below, decorated with ``hookimpl``::

    from collidium import hookspecs

    @hookspecs.hookimpl
    def collidium_tasks():
        return [MyTask()]

Hooks that provide things are called once, when a process starts; each returns a list.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pluggy

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

PROJECT = "collidium"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


# -- things that a plugin provides ------------------------------------------------------------------


@hookspec
def collidium_tasks() -> Sequence[Task]:  # type: ignore[empty-body]  # a specification
    """Return the benchmark tasks that this plugin brings.

    Called when the server, a command or a scoring process loads its plugins. A task becomes *installed*;
    it takes submissions once an operator lists it (``collidium task add NAME``).
    """


@hookspec
def collidium_baselines() -> Sequence[Baseline]:  # type: ignore[empty-body]  # a specification
    """Return baselines of tasks of other plugins, such as those that need software that a task does without.

    Called by ``collidium.plugins.load().baselines()``. Import what is heavy when a baseline is called.
    """


@hookspec
def collidium_runners(settings: Settings) -> Sequence[Runner]:  # type: ignore[empty-body]  # a specification
    """Return the runners that this plugin brings; ``PLATFORM_RUNNER`` chooses one by its name.

    Called when a server or a worker starts. Connect lazily: a runner that is not chosen is never used, except
    to follow requests that were handed to it before.
    """


@hookspec
def collidium_storages(settings: Settings) -> Sequence[Storage]:  # type: ignore[empty-body]  # a specification
    """Return the storage backends that this plugin brings; ``PLATFORM_STORAGE`` chooses one by its name.

    Called when a server or a command that needs files starts. Connect lazily.
    """


@hookspec
def collidium_identity_providers(settings: Settings) -> Sequence[IdentityProvider]:  # type: ignore[empty-body]  # a specification
    """Return the identity providers that this plugin brings; ``PLATFORM_IDENTITY`` chooses one by its name.

    Called when a server starts. Connect lazily.
    """


@hookspec
def collidium_executors(settings: Settings) -> Sequence[Executor]:  # type: ignore[empty-body]  # a specification
    """Return the executors that this plugin brings; ``PLATFORM_EXECUTOR`` chooses one by its name.

    Called when a server or a command that scores starts. Start workers lazily.
    """


@hookspec
def collidium_blueprints(settings: Settings) -> Sequence[Blueprint]:  # type: ignore[empty-body]  # a specification
    """Return Quart blueprints to mount on the server, each with a ``url_prefix`` of its own.

    Called when a server starts. A prefix that another plugin or the platform uses is refused.
    """


@hookspec
def collidium_commands() -> Sequence[click.Command]:  # type: ignore[empty-body]  # a specification
    """Return commands or groups to add to the ``collidium`` command.

    Called when the command is asked for something that the platform itself does not know. Its help
    imports no other distribution: it lists the commands declared next to the plugin in entry-point
    group ``collidium.commands``, command name = the plugin's module.
    """


@hookspec
def collidium_pipelines() -> Sequence[Pipeline]:  # type: ignore[empty-body]  # a specification
    """Return the pipelines that this plugin brings; ``collidium simulate --pipeline`` chooses one by name.

    Called by ``collidium simulate``. A pipeline is data: import nothing heavy for it.
    """


@hookspec
def collidium_screens() -> Sequence[type[Screen[Any]]]:  # type: ignore[empty-body]  # a specification
    """Return the screens that this plugin brings to the operator's console: classes, not instances.

    Called by ``collidium tui`` once its first screen is there. A screen is a subclass of
    ``collidium_tui.ConsoleScreen``, known by its ``label``; it gets the next free key, and stands in the
    palette. Import Textual within this function alone: every command imports the plugin.
    """


# -- things that happened ----------------------------------------------------------------------------


@hookspec
def collidium_submission_scored(submission: dict[str, Any]) -> None:
    """A submission was scored and kept.

    Called once per submission, after the database transaction, with the record as ``GET
    /v1/submissions/{id}`` shows it. What a plugin raises here is logged and changes nothing.
    """


@hookspec
def collidium_request_finished(request: dict[str, Any]) -> None:
    """A simulation request reached a terminal state.

    Called once per request, after the database transaction, with the record as ``GET /v1/requests/{id}``
    shows it. What a plugin raises here is logged and changes nothing.
    """
