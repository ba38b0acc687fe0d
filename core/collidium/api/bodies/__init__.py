"""Request bodies that wait: read from the socket no faster than the handler takes them.

Quart reads a body into memory as fast as it arrives and checks its size limit only there. :func:`install`
gives an app bodies with backpressure, a limit that holds however the body is sent, and an end to bodies
that stand still; :func:`receive_to_file` streams one to disk.
"""

from __future__ import annotations

from collidium.api.bodies.body import Body, Request, install
from collidium.api.bodies.receive import ReceivedFile, append_to_file, receive_to_file

__all__ = ["Body", "ReceivedFile", "Request", "append_to_file", "install", "receive_to_file"]
