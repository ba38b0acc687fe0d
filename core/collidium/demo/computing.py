"""Where the demo's events are computed: on this machine where its pipeline is installed, else by nobody."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from collidium.errors import CollidiumError, ConfigurationError
from collidium.order import PRESETS
from collidium.pipelines import choice
from collidium.pipelines.choice import BUILT_IN, NONE
from collidium.plugins import Plugins

#: What is computed.
PRESET: Final = "ttbar-quick"


@dataclass(frozen=True, slots=True)
class Computing:
    """A runner, as the demo uses it."""

    runner: str
    #: Of the server.
    settings: Mapping[str, str]
    #: Where orders go, in a sentence.
    told: str
    #: How long one may take.
    patience_seconds: float


#: Many times what it takes for a job.
MOCK: Final = Computing("mock", {}, "from the mock runner", 60.0)
#: Somebody waits, so its jobs do not stand back.
LOCAL: Final = Computing(
    "local",
    {"PLATFORM_RUN_MODE": "real", "PLATFORM_RUNNER": "local", "PLATFORM_LOCAL_NICENESS": "0"},
    f"computed on this machine by the pipeline {BUILT_IN}",
    600.0,
)


def choose(runner: Literal["auto", "local", "mock"], loaded: Plugins) -> Computing:
    """The runner that was asked for; ``auto``: the local one if it can run here.

    Raises CollidiumError where the local one was asked for and cannot.
    """
    if runner == "mock":
        return MOCK
    try:
        _require_pipeline(loaded)
    except CollidiumError:
        if runner == "local":
            raise
        return MOCK
    return LOCAL


def _require_pipeline(loaded: Plugins) -> None:
    if sys.platform != "linux":
        raise ConfigurationError("the runner local needs Linux")
    choice.choose(BUILT_IN, NONE, PRESETS[PRESET], loaded.pipelines().get, lambda _: None)
