"""Hook specifications: the public contract between the platform and its plugins.

A plugin is a module or object named by an entry point of group ``collidium``. It implements any of the
functions below, decorated with ``hookimpl``::

    from collidium import hookspecs

    @hookspecs.hookimpl
    def collidium_tasks():
        return [MyTask()]

Hooks that provide objects are called once, when a process starts; each returns a list.
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


# -- objects that plugins provide -------------------------------------------------------------------


@hookspec
def collidium_tasks() -> Sequence[Task]:  # type: ignore[empty-body]  # a specification
    """Return the benchmark tasks of this plugin.

    Called when the server, a command or a scoring process loads its plugins. A task becomes *installed*; it
    accepts submissions once an operator lists it (``collidium task add NAME``).
    """


@hookspec
def collidium_baselines() -> Sequence[Baseline]:  # type: ignore[empty-body]  # a specification
    """Return baselines of other plugins' tasks, for example those that need additional software.

    Called by ``collidium.plugins.load().baselines()``. Import heavy packages when a baseline is called.
    """


@hookspec
def collidium_runners(settings: Settings) -> Sequence[Runner]:  # type: ignore[empty-body]  # a specification
    """Return the runners of this plugin; ``PLATFORM_RUNNER`` selects one by name.

    Called when a server or a worker starts. Connect lazily: a runner that is not selected is only used to
    follow requests that it accepted earlier.
    """


@hookspec
def collidium_storages(settings: Settings) -> Sequence[Storage]:  # type: ignore[empty-body]  # a specification
    """Return the storage backends of this plugin; ``PLATFORM_STORAGE`` selects one by name.

    Called when a server or a command that needs files starts. Connect lazily.
    """


@hookspec
def collidium_identity_providers(settings: Settings) -> Sequence[IdentityProvider]:  # type: ignore[empty-body]  # a specification
    """Return the identity providers of this plugin; ``PLATFORM_IDENTITY`` selects one by name.

    Called when a server starts. Connect lazily.
    """


@hookspec
def collidium_executors(settings: Settings) -> Sequence[Executor]:  # type: ignore[empty-body]  # a specification
    """Return the executors of this plugin; ``PLATFORM_EXECUTOR`` selects one by name.

    Called when a server or a command that scores starts. Start workers lazily.
    """


@hookspec
def collidium_blueprints(settings: Settings) -> Sequence[Blueprint]:  # type: ignore[empty-body]  # a specification
    """Return Quart blueprints to mount on the server, each with its own ``url_prefix``.

    Called when a server starts. A prefix that another plugin or the platform uses is rejected.
    """


@hookspec
def collidium_commands() -> Sequence[click.Command]:  # type: ignore[empty-body]  # a specification
    """Return commands or groups to add to the ``collidium`` command.

    Called for a command that the platform does not have. The help imports no other distribution: it lists the
    commands declared in the entry-point group ``collidium.commands``, command name = the plugin's module.
    """


@hookspec
def collidium_pipelines() -> Sequence[Pipeline]:  # type: ignore[empty-body]  # a specification
    """Return the pipelines of this plugin; ``collidium simulate --pipeline`` selects one by name.

    Called by ``collidium simulate``. A pipeline is data: import nothing heavy for it.
    """


@hookspec
def collidium_screens() -> Sequence[type[Screen[Any]]]:  # type: ignore[empty-body]  # a specification
    """Return the screens that this plugin adds to the operator console: classes, not instances.

    Called by ``collidium tui`` after its first screen is shown. A screen is a subclass of
    ``collidium_tui.ConsoleScreen``, identified by its ``label``; it gets the next free key and an entry in
    the palette. Import Textual inside this function: every command imports the plugin.
    """


# -- events ------------------------------------------------------------------------------------------


@hookspec
def collidium_submission_scored(submission: dict[str, Any]) -> None:
    """A submission was scored and stored.

    Called once per submission, after the database transaction, with the record of ``GET
    /v1/submissions/{id}``. Exceptions are logged and have no effect.
    """


@hookspec
def collidium_request_finished(request: dict[str, Any]) -> None:
    """A simulation request reached a terminal state.

    Called once per request, after the database transaction, with the record of ``GET /v1/requests/{id}``.
    Exceptions are logged and have no effect.
    """
