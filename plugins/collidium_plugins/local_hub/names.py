"""Validation of names of accounts, repositories, revisions and files."""

from __future__ import annotations

import re
from typing import Final, Literal, TypeGuard

from collidium.contracts.identity import ERASED, SSO_SUFFIX
from collidium_plugins.local_hub.failures import HubFailure, invalid

Kind = Literal["models", "datasets", "spaces"]
KINDS: Final[tuple[Kind, ...]] = ("models", "datasets", "spaces")

#: First segments of the hub's own paths.
RESERVED: Final = frozenset(
    {"api", "datasets", "join", "lfs", "login", "models", "oauth", "settings", "spaces"}
)

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9-_.]{0,95}")
_REVISION: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/+-]{0,199}")
OID: Final = re.compile(r"[0-9a-f]{40}")
SHA256: Final = re.compile(r"[0-9a-f]{64}")

PATH_BYTES: Final = 1000
PATH_DEPTH: Final = 32
SEGMENT_BYTES: Final = 255


def is_name(name: object) -> TypeGuard[str]:
    """Whether an account or repository may have this name, by the rules of ``huggingface_hub``."""
    return (
        isinstance(name, str)
        and _NAME.fullmatch(name) is not None
        and not ("--" in name or ".." in name or name.endswith(("-", ".", ".git")))
    )


def is_account_name(name: object) -> TypeGuard[str]:
    """Whether an account may have this name; excludes names of erased and of single sign-on accounts."""
    if not is_name(name) or name.casefold().endswith(SSO_SUFFIX):
        return False
    return name.lower() not in RESERVED and not ERASED.fullmatch(name.casefold())


def page_prefix(kind: Kind) -> str:
    """The prefix of ``namespace/name`` in paths outside ``/api``."""
    return "" if kind == "models" else f"{kind}/"


def is_revision(name: str) -> bool:
    """Whether a branch, tag or commit may have this name."""
    return _REVISION.fullmatch(name) is not None


def check_ref_name(name: object) -> str:
    """Validate the name of a branch or tag; raises HubError 400."""
    if (
        not isinstance(name, str)
        or not _REVISION.fullmatch(name)
        or OID.fullmatch(name)
        or name.startswith("refs/")
        or name.endswith(("/", ".", ".lock"))
        or ".." in name
        or "//" in name
    ):
        raise invalid("Invalid name of a branch or tag: use letters, digits and . _ / + - inside")
    return name


def check_path(path: object) -> tuple[str, ...]:
    """Split a file's path into segments; raises HubError 400 if it is unsafe on a disk."""
    if not isinstance(path, str) or not path or len(path.encode(errors="replace")) > PATH_BYTES:
        raise invalid(f"A path must be a string of 1 to {PATH_BYTES} bytes")
    segments = tuple(path.split("/"))
    if len(segments) > PATH_DEPTH or not all(map(_is_segment, segments)):
        raise invalid(f"Invalid path {path!r}")
    return segments


def _is_segment(segment: str) -> bool:
    return (
        segment not in {"", ".", ".."}
        and segment.lower() != ".git"
        and len(segment.encode(errors="replace")) <= SEGMENT_BYTES
        # Not printable: control characters, and surrogates, which no file name can hold.
        and all(character == " " or character.isprintable() for character in segment)
        and "\\" not in segment
    )


def is_path(path: str) -> bool:
    """Whether a file may have this path."""
    try:
        check_path(path)
    except HubFailure:
        return False
    return True
