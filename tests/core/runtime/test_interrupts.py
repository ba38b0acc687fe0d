"""Interrupts by Ctrl-C are not those that plugins raise."""

from __future__ import annotations

import os
import signal

from collidium.runtime.interrupts import Noting


def test_an_interrupt_is_noted_after_the_handler_changed() -> None:
    """As asyncio does when it removes its own within the context."""
    before = signal.getsignal(signal.SIGINT)
    noted = None
    try:
        with Noting():
            signal.signal(signal.SIGINT, signal.default_int_handler)
            with Noting():
                try:
                    os.kill(os.getpid(), signal.SIGINT)
                except KeyboardInterrupt as error:
                    noted = Noting.is_interrupt(error)
    finally:
        signal.signal(signal.SIGINT, before)
    assert noted
