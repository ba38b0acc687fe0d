"""Pythia, seeded for every interaction, which depends on the channel and the seed alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pythia8mc

from collidium_plugins.acts_pipeline.generation.channels import (
    ENERGY,
    TRACKER_LENGTH,
    TRACKER_RADIUS,
    Channel,
)
from collidium_plugins.acts_pipeline.generation.record import Interaction, interaction
from collidium_plugins.acts_pipeline.order import StageFailed

#: Pythia fails on an event now and then, and continues with the same random numbers.
_ATTEMPTS: Final = 100
_ATTEMPTS_OF_FILE: Final = 10


class GenerationFailed(StageFailed):
    """Pythia cannot generate an event."""


def multiparton(channel: Channel, installed: float) -> Path | None:
    """Return the channel's file if the installed version of Pythia made it."""
    path = channel.multiparton
    return path if path and path.stem.endswith(f"-{installed:.3f}") else None


class Pythia:
    """One Pythia for one channel, seeded for every interaction.

    Initialisation draws random numbers too, for the largest cross sections; it always starts from the same
    seed, so that any two instances are equal.
    """

    def __init__(self, channel: Channel) -> None:
        """Set up: a quarter of a second, for minimum bias some; raises GenerationFailed."""
        self._channel = channel
        self._set_up()

    def _set_up(self) -> None:
        channel = self._channel
        #: The event of the file that Pythia reads next.
        self._next = 0
        self._pythia = pythia8mc.Pythia("", False)
        for setting in (
            "Print:quiet = on",
            "Beams:idA = 2212",
            "Beams:idB = 2212",
            f"Beams:eCM = {ENERGY}",
            # K0S and hyperons decay in the generator where the tracker is; beyond, the calorimeters get them.
            "ParticleDecays:limitCylinder = on",
            f"ParticleDecays:xyMax = {TRACKER_RADIUS}",
            f"ParticleDecays:zMax = {TRACKER_LENGTH}",
            "Random:setSeed = on",
            "Random:seed = 1",
            *channel.settings,
            *([f"SLHA:file = {channel.spectrum}"] if channel.spectrum else []),
        ):
            if not self._pythia.readString(setting):
                raise GenerationFailed(f"Pythia rejects the setting {setting!r}")
        if made := multiparton(channel, self._pythia.settings.parm("Pythia:versionNumber")):
            self._pythia.settings.word("MultipartonInteractions:initFile", str(made))
            self._pythia.settings.mode("MultipartonInteractions:reuseInit", 2)
        if channel.events:
            self._pythia.settings.word("Beams:LHEF", str(channel.events))
        if channel.photons:
            self._cuts = _PhotonCuts(*channel.photons)  # Pythia keeps no reference
            self._pythia.setUserHooksPtr(self._cuts)
        if not self._pythia.init():
            raise GenerationFailed(f"Pythia cannot be set up for {channel.title}")

    def generate(self, seed: tuple[int, int], keeps: Callable[[Any], bool], event: int = 0) -> Interaction:
        """The interaction of a seed (:func:`seeds.for_pythia`), of final particles those that it ``keeps``.

        ``event`` is its place in the Les Houches file, if there is one. Raises GenerationFailed if Pythia
        fails repeatedly.
        """
        if self._channel.events is None:
            self._start(seed)
            done = any(self._pythia.next() for _ in range(_ATTEMPTS))
        else:  # Pythia goes on to the next event of the file after a failure
            done = any(self._read(event, seed, attempt) for attempt in range(_ATTEMPTS_OF_FILE))
        if not done:
            raise GenerationFailed(f"Pythia failed on event {event} repeatedly")
        return interaction(self._pythia.event, keeps)

    def _start(self, seed: tuple[int, int]) -> None:
        start, arithmetic = seed
        random = self._pythia.rndm
        random.init(start)
        state = random.getState()
        state.c = arithmetic / 2**24
        random.setState(state)

    def _read(self, event: int, seed: tuple[int, int], attempt: int) -> bool:
        if self._next > event:
            self._set_up()
        if event > self._next:
            self._pythia.LHAeventSkip(event - self._next)
        self._next = event + 1
        self._start((max(1, seed[0] - attempt), seed[1]))
        return bool(self._pythia.next())


class _PhotonCuts(pythia8mc.UserHooks):  # type: ignore[misc]  # untyped
    """Veto hard processes with a photon outside of pT and η."""

    def __init__(self, pt: float, eta: float) -> None:
        super().__init__()
        self._pt, self._eta = pt, eta

    def canVetoProcessLevel(self) -> bool:  # noqa: N802  # Pythia's names
        return True

    def doVetoProcessLevel(self, process: Any) -> bool:  # noqa: N802 -- Pythia's name
        return any(
            entry.id() == 22 and (entry.pT() < self._pt or abs(entry.eta()) > self._eta)
            for entry in process
            if entry.isFinal()
        )
