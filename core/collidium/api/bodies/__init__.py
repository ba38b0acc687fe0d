"""Request bodies with backpressure: read from the socket only as fast as the handler consumes them.

Quart reads bodies into memory as fast as they arrive and checks the size limit only there. :func:`install`
adds backpressure, a size limit that also holds for chunked bodies, and timeouts for stalled bodies;
:func:`receive_to_file` streams a body to disk.
"""

from __future__ import annotations

from collidium.api.bodies.body import Request, RequestBody, install
from collidium.api.bodies.receive import ReceivedFile, append_to_file, receive_to_file

__all__ = ["ReceivedFile", "Request", "RequestBody", "append_to_file", "install", "receive_to_file"]
