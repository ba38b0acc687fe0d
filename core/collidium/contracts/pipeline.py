"""A pipeline: the stages from a physics process to the tables of a dataset, as data.

A stage is a command that reads and writes below one working directory. The platform chooses where commands
run (in a container, or on this machine), their order, and what is repeated after a failure.

The words of a command may contain these placeholders: ``{python}`` (an interpreter; on this machine the one
of the platform), each field of an order (``{channel}``, ``{events}``, ``{pileup}``, ``{seed}``, ``{vary}``),
``{lhe}`` (the sha256 of :data:`LES_HOUCHES`, empty without it), ``{first_event}``, ``{processes}`` and
``{work}`` (the working directory). Other braces are unchanged. Standard output and error
are logged, except for lines ``collidium-progress DONE TOTAL``, which report progress. The seed is also in the
environment (:data:`SEED`), which other users of a machine cannot read, unlike command lines.

Events get the ids ``first_event`` to ``first_event + events - 1``. An event must depend only on the
pipeline's version, channel, pileup, seed, variation and its id: not on the number of events or processes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from collidium.order import ORDER_FIELDS

#: The folder in which the last stage writes ``<table>.parquet``, or shards
#: ``<table>-00000-of-00004.parquet``.
TABLES = "tables"

#: The Les Houches event file of ``--lhe`` below the working directory: event 7 is made of its event 7.
LES_HOUCHES = "input.lhe"

#: The variable of the environment of stages that has the seed.
SEED = "COLLIDIUM_SEED"

#: Placeholders of commands.
PLACEHOLDERS = (
    "python",
    *(one.name for one in ORDER_FIELDS),
    "lhe",
    "first_event",
    "processes",
    "work",
)


@dataclass(frozen=True, slots=True)
class Stage:
    """One step of a pipeline."""

    name: str
    #: Description: "hard scatter and parton shower".
    title: str
    command: tuple[str, ...]
    #: Files or folders below the working directory that it reads, and those that it must write.
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    #: Its container image; None if it runs on this machine only.
    image: str | None = None
    #: Whether it resumes from outputs of an interrupted run; otherwise they are removed before it runs.
    resumes: bool = False
    #: Expected seconds, once and for each event without pileup: shown until the stage reports progress.
    overhead_seconds: float = 0.0
    seconds_per_event: float = 1.0


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Stages in the order in which they run."""

    #: Selects it with ``--pipeline``.
    name: str
    title: str
    #: Another version gives other events; an unfinished run of an older one is not resumed.
    version: str
    stages: tuple[Stage, ...]
    #: Channels and their descriptions; None: those that its programs accept.
    channels: Mapping[str, str] | None = None
    #: Unsupported channels, each with the reason.
    refused: Mapping[str, str] = field(default_factory=dict)
    #: Maximum pileup; None: no limit of its own.
    max_pileup: int | None = None
    #: Seeds go from 0 to this; at most 2**128 - 1.
    largest_seed: int = 2**31 - 1
    #: Systematic variations that it supports, of those in ``collidium.order.VARIATIONS``.
    variations: tuple[str, ...] = ()
    #: Whether it takes the hard processes of a Les Houches file in place of those of a channel.
    takes_lhe: bool = False
    #: Python modules that it needs on this machine, and the extra that installs them; None if it runs in
    #: containers only.
    native: tuple[str, ...] | None = None
    extra: str | None = None
    #: A folder with the Containerfile of its image; None if the image is pulled.
    containerfile: str | None = None
    #: Facts for the card of a dataset: detector, generator, versions.
    facts: Mapping[str, str] = field(default_factory=dict)
    #: Further facts of each channel: cross section, weights.
    channel_facts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def facts_of(self, channel: str) -> Mapping[str, str]:
        """Return the facts for the card of a dataset of the channel."""
        facts = {**self.facts, **self.channel_facts.get(channel, {})}
        return {name: fact for name, fact in facts.items() if name.lower() != "pipeline"}
