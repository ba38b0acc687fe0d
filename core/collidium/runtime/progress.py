"""Progress of long operations: the type of a callback, and a count that calls it."""

from collections.abc import Callable

#: Called with what is done and the total, in a unit that the caller documents.
Progress = Callable[[int, int], None]


class ProgressCount:
    """A count of what is done of ``total``, which is reported to ``progress``."""

    def __init__(self, progress: Progress | None, total: int, *, done: int = 0) -> None:
        self._progress = progress
        self._total = total
        self._done = done

    def add(self, number: int) -> None:
        """Count ``number`` more, up to the total."""
        self._done = min(self._done + number, self._total)
        if self._progress:
            self._progress(self._done, self._total)
