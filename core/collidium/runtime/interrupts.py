"""Handling of Ctrl-C during imports, where a KeyboardInterrupt would cause tracebacks and other errors."""

import os


def _leave(*_: object) -> None:
    os.write(2, b"Interrupted.\n")
    os._exit(130)


try:
    import signal
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
