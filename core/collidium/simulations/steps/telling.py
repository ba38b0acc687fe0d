"""What owners of requests are told of what goes wrong; the rest is for operators, and goes to the log."""

from __future__ import annotations

import logging
from typing import Final

from collidium.contracts.storage import StorageUnavailable
from collidium.errors import ConfigurationError

logger = logging.getLogger(__name__)

#: Their messages name settings, paths and hosts.
_OF_OPERATORS: Final[tuple[tuple[type[Exception], str], ...]] = (
    (ConfigurationError, "the platform is not set up right for this; its operators see why"),
    (StorageUnavailable, "the platform's storage does not answer"),
)
#: Characters of an error that are logged; what other programs write has no bounds.
_LOGGED: Final = 1000


def tell_owner(error: Exception) -> str:
    """The error as a timeline has it. Those of runners and hubs are written for owners, their causes not."""
    return next((sentence for kind, sentence in _OF_OPERATORS if isinstance(error, kind)), str(error))


def tell_operators(error: Exception, where: str) -> None:
    """Log what the owner is not told, and ``where`` it happened."""
    details = [str(each)[:_LOGGED] for each in (error, error.__cause__) if each is not None]
    if details != [tell_owner(error)]:
        logger.warning("%s: %s", where, "; because of: ".join(details))
