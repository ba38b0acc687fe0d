"""Handling of Ctrl-C during imports, where a KeyboardInterrupt would cause tracebacks, and of plugins.

What a plugin raises is its failure, KeyboardInterrupt included, so Ctrl-C is known by its signal: the handler
of :class:`Noting` notes it, and calls the handler that was there. It is ours only while plugins are called:
asyncio cancels the main task at Ctrl-C only where it finds Python's own handler.
"""

import os


def _leave(*_: object) -> None:
    os.write(2, b"Interrupted.\n")
    os._exit(130)


try:
    import signal
    import threading
    from collections.abc import Callable
    from types import FrameType
    from typing import ClassVar
except KeyboardInterrupt:
    os._exit(130)


class Importing:
    """A context in which Ctrl-C ends the process at once, unless SIGINT is ignored or handled otherwise."""

    def __enter__(self) -> None:
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, _leave)

    def __exit__(self, *_: object) -> None:
        if signal.getsignal(signal.SIGINT) is _leave:
            signal.signal(signal.SIGINT, signal.default_int_handler)


class Noting:
    """A context in which SIGINT is noted; contexts may overlap.

    Other threads than the main one never get a signal, and nothing is noted where SIGINT is ignored.
    """

    _entered: ClassVar = 0
    _is_noted: ClassVar = False
    _before: ClassVar[Callable[[int, FrameType | None], object]]

    def __enter__(self) -> None:
        if _is_main_thread():
            if Noting._entered == 0:
                Noting._is_noted = False
            # Within another context, too: asyncio may have put its handler, or Python's, in place.
            before = signal.getsignal(signal.SIGINT)
            if callable(before) and before is not Noting._note:
                Noting._before = before
                signal.signal(signal.SIGINT, Noting._note)
            Noting._entered += 1

    def __exit__(self, *_: object) -> None:
        if _is_main_thread():
            Noting._entered -= 1
            if Noting._entered == 0 and signal.getsignal(signal.SIGINT) is Noting._note:
                signal.signal(signal.SIGINT, Noting._before)

    @staticmethod
    def _note(number: int, frame: FrameType | None) -> None:
        Noting._is_noted = True
        Noting._before(number, frame)

    @staticmethod
    def is_interrupt(error: BaseException) -> bool:
        """Whether an exception is Ctrl-C's: a KeyboardInterrupt in this thread after a noted signal."""
        return isinstance(error, KeyboardInterrupt) and Noting._is_noted and _is_main_thread()


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
