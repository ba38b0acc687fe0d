"""Browser sessions: which account is signed in, in which browser, and sign-ins that are under way.

A browser holds one random key in a cookie, the database its hash. All else that a sign-in or a form is
recognised by is derived from that key (:func:`~collidium.sessions.sessions.derived`) and stored nowhere.
"""

from collidium.sessions.sessions import (
    PENDING_SECONDS,
    PendingSignIn,
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
    "PendingSignIn",
    "Session",
    "Sessions",
    "begin",
    "count_attempt",
    "derived",
    "finish",
    "forget",
    "opened",
]
