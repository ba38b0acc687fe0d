"""Browser sessions, and sign-ins in progress.

The browser holds a random key in a cookie, the database its hash. All other secrets of a sign-in or a form
are derived from the key (:func:`~collidium.sessions.sessions.derived`) and not stored.
"""

from collidium.sessions.sessions import (
    PENDING_SECONDS,
    BegunSignIn,
    Session,
    Sessions,
    begin,
    count_attempt,
    derived,
    finish,
    forget,
    opened,
)

__all__ = [
    "PENDING_SECONDS",
    "BegunSignIn",
    "Session",
    "Sessions",
    "begin",
    "count_attempt",
    "derived",
    "finish",
    "forget",
    "opened",
]
