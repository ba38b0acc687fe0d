"""What a person is told when a stage fails."""

from __future__ import annotations

from collidium.files.durable import is_full


class StageFailed(RuntimeError):
    """A stage cannot do its work; the message says why and what to do."""


def told(error: Exception) -> str | None:
    """One line for the log, or None for a fault of the program itself, whose traceback is wanted."""
    if isinstance(error, StageFailed):
        return str(error)
    if isinstance(error, ModuleNotFoundError) and error.name in {"acts", "awkward", "fastjet", "pythia8mc"}:
        return f"{error.name} is not installed: pip install 'collidium[sim]'"
    if isinstance(error, OSError) and is_full(error):
        return (
            f"the disk is full ({error.strerror}); "
            "what is finished is kept, the same command goes on from there"
        )
    if isinstance(error, OSError):
        return f"{type(error).__name__}: {error}"
    return None
