"""Pythia with an own seed for each interaction, so that interactions are independent of each other."""

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
from collidium_plugins.acts_pipeline.order import StageError

#: Pythia occasionally fails on an event; it retries with the random numbers that follow.
_ATTEMPTS: Final = 100
_ATTEMPTS_OF_FILE: Final = 10


class GenerationFailed(StageError):
    """Pythia cannot generate an event."""


def multiparton(channel: Channel, installed: float) -> Path | None:
    """Return the channel's file of multiparton interactions if it is of the installed version of Pythia."""
    path = channel.multiparton
    return path if path and path.stem.endswith(f"-{installed:.3f}") else None


class Pythia:
    """A Pythia instance for one channel, seeded for each interaction.

    Initialisation also draws random numbers, to find the maxima of cross sections. It always uses the same
    seed, so all instances of a channel are equal.
    """

    def __init__(self, channel: Channel) -> None:
        """Initialise Pythia, which takes 0.25 s or more. Raises GenerationFailed."""
        self._channel = channel
        self._set_up()

    def _set_up(self) -> None:
        channel = self._channel
        #: Number of the event that Pythia reads next from the file.
        self._next = 0
        self._pythia = pythia8mc.Pythia("", False)
        for setting in (
            "Print:quiet = on",
            "Beams:idA = 2212",
            "Beams:idB = 2212",
            f"Beams:eCM = {ENERGY}",
            # Within the tracker, K0S and hyperons decay in the generator.
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
        if file := multiparton(channel, self._pythia.settings.parm("Pythia:versionNumber")):
            self._pythia.settings.word("MultipartonInteractions:initFile", str(file))
            self._pythia.settings.mode("MultipartonInteractions:reuseInit", 2)
        if channel.events:
            self._pythia.settings.word("Beams:LHEF", str(channel.events))
        if channel.photons:
            self._cuts = _PhotonCuts(*channel.photons)  # Pythia keeps no reference
            self._pythia.setUserHooksPtr(self._cuts)
        if not self._pythia.init():
            raise GenerationFailed(f"Pythia cannot be set up for {channel.title}")

    def generate(self, seed: tuple[int, int], keeps: Callable[[Any], bool], event: int = 0) -> Interaction:
        """Generate the interaction of a seed.

        Parameters
        ----------
        seed : tuple of int
            Of :func:`~.seeds.for_pythia`.
        keeps : callable
            Whether to keep a final particle of the event record.
        event : int
            Number of the event in the Les Houches file, if there is one.

        Raises
        ------
        GenerationFailed
            If Pythia fails repeatedly.
        """
        if self._channel.events is None:
            self._seed(seed)
            done = any(self._pythia.next() for _ in range(_ATTEMPTS))
        else:  # after a failure Pythia would continue with the next event of the file
            done = any(self._read(event, seed, attempt) for attempt in range(_ATTEMPTS_OF_FILE))
        if not done:
            raise GenerationFailed(f"Pythia failed on event {event} repeatedly")
        return interaction(self._pythia.event, keeps)

    def _seed(self, seed: tuple[int, int]) -> None:
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
        self._seed((max(1, seed[0] - attempt), seed[1]))
        return bool(self._pythia.next())


class _PhotonCuts(pythia8mc.UserHooks):  # type: ignore[misc]  # untyped
    """Vetoes hard processes with a photon below the minimum pT or beyond the maximum |η|."""

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
