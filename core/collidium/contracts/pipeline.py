"""What a pipeline is: the stages from a physics process to the tables of a dataset, as data.

A stage is a command that reads and writes below one working directory. The platform chooses where commands
run (a container, or this machine), in which order, and what is done again after a failure.

The words of a command may hold these placeholders: ``{python}`` (an interpreter; on this machine the one that
has this platform), ``{channel}``, ``{events}``, ``{pileup}``, ``{seed}``, ``{first_event}``, ``{processes}``
and ``{work}`` (the working directory). Other braces stay as they are. What a command writes to its standard
output and error is kept in a log, but for lines ``collidium-progress DONE TOTAL``, which say how far it has
come.

Events get the ids ``first_event`` to ``first_event + events - 1``. What an event looks like must depend on
the pipeline's version, channel, pileup, seed and its id alone: not on how many there are, nor on processes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

#: Where the last stage leaves ``<table>.parquet``, or shards ``<table>-00000-of-00004.parquet``.
TABLES = "tables"

#: What may stand in braces in the words of a command.
PLACEHOLDERS = ("python", "channel", "events", "pileup", "seed", "first_event", "processes", "work")


@dataclass(frozen=True, slots=True)
class Stage:
    """One step of a pipeline."""

    name: str
    #: What it does, for people: "hard scatter and parton shower".
    title: str
    command: tuple[str, ...]
    #: Files or folders below the working directory that it reads, and those that it must leave there.
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    #: The container image that it runs in; None where it runs on this machine alone.
    image: str | None = None
    #: Whether it goes on with what an interrupted run of it left in its outputs; else they are removed
    #: before it runs.
    resumes: bool = False
    #: Expected seconds, once and for each event without pileup: shown until the stage tells its progress.
    overhead_seconds: float = 0.0
    seconds_per_event: float = 1.0


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Stages in the order in which they run."""

    #: What ``--pipeline`` chooses it by.
    name: str
    title: str
    #: Another version gives other events; an unfinished run of an older one is not resumed.
    version: str
    stages: tuple[Stage, ...]
    #: Channels it can simulate, each with what is generated; None: whatever its programs know.
    channels: Mapping[str, str] | None = None
    #: Channels that people expect and that it refuses, each with the reason.
    refused: Mapping[str, str] = field(default_factory=dict)
    #: Python modules that it needs to run on this machine, and the extra that brings them; None where it
    #: runs in containers alone.
    native: tuple[str, ...] | None = None
    extra: str | None = None
    #: A folder with the Containerfile that its image is built from; None where an image is pulled.
    containerfile: str | None = None
    #: Facts for the card of a dataset: detector, generator, versions.
    facts: Mapping[str, str] = field(default_factory=dict)
