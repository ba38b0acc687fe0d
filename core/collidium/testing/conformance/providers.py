"""The contracts of a storage backend and of an identity provider."""

from __future__ import annotations

import asyncio
from pathlib import Path
from uuid import uuid4

from collidium.contracts.identity import IdentityProvider, IdentityUnavailable
from collidium.contracts.storage import MissingFile, Storage, StorageUnavailable
from collidium.testing.conformance.promise import Nonconforming, check_close, check_name, promise, refuses

_SIZE = 1_000_000
_BAD_KEYS = ("", "/etc/passwd", "../outside", "a/../../outside", "a//b", "UPPER", "a\nb", "x" * 513)

#: Invalid and hostile tokens.
_BAD_TOKENS = ("", "unknown", "a b", "ü", "x\r\nX-Injected: 1", "\0", "../../", "x" * 100_000)


async def check_storage(storage: Storage, tmp_path: Path, *, unreachable: Storage | None = None) -> None:
    """Check that files are stored atomically by key.

    Keys begin with ``conformance/``; the files are deleted afterwards.

    Parameters
    ----------
    storage : Storage
        The storage backend, which is closed afterwards.
    tmp_path : Path
        An empty directory for local files.
    unreachable : Storage, optional
        A backend that is down, which must raise StorageUnavailable.

    Raises
    ------
    Nonconforming
        If a promise of :class:`~collidium.contracts.storage.Storage` is broken.

    Examples
    --------
    ::

        async def test_my_storage_conforms(tmp_path):
            await check_storage(MyStorage(), tmp_path)
    """
    check_name(storage.name, "a storage backend")
    prefix = f"conformance/{uuid4().hex}"
    await _check_a_file(storage, f"{prefix}/nested/file.parquet", tmp_path)
    await _check_a_missing_file(storage, f"{prefix}/missing", tmp_path)
    await _check_simultaneous_puts(storage, f"{prefix}/contended", tmp_path)
    await _check_keys(storage, tmp_path)
    await check_close(storage)
    if unreachable is not None:
        await _check_unreachable(unreachable, tmp_path)


async def _check_a_file(storage: Storage, key: str, tmp_path: Path) -> None:
    source, copy = tmp_path / "source", tmp_path / "copy"
    for content in (b"first" * _SIZE, b"", b"second"):  # putting again replaces
        source.write_bytes(content)
        await storage.put(key, source)
        promise(source.exists() and source.read_bytes() == content, "put must leave its source alone")
        promise(await storage.exists(key), "a file must exist after put")
        await storage.get(key, copy)
        promise(copy.read_bytes() == content, "get must return the content of the last put")
    source.unlink()
    promise(await storage.exists(key), "a stored file must not depend on the source of its put")
    await storage.get(key, copy)
    promise(copy.read_bytes() == b"second", "a stored file must not depend on the source of its put")
    await storage.delete(key)
    promise(not await storage.exists(key), "a file must not exist after delete")


async def _check_a_missing_file(storage: Storage, key: str, tmp_path: Path) -> None:
    target = tmp_path / "target"
    promise(not await storage.exists(key), "exists must be False for a key never put")
    with refuses(MissingFile, "get of a key never put"):
        await storage.get(key, target)
    promise(not target.exists(), "a get that fails must leave no file behind")
    await storage.delete(key)


async def _check_simultaneous_puts(storage: Storage, key: str, tmp_path: Path) -> None:
    contents = [bytes([digit]) * _SIZE for digit in b"012345"]
    sources = [tmp_path / f"source-{number}" for number in range(len(contents))]
    for source, content in zip(sources, contents, strict=True):
        source.write_bytes(content)
    await asyncio.gather(*(storage.put(key, source) for source in sources))
    await storage.get(key, tmp_path / "winner")
    promise(
        (tmp_path / "winner").read_bytes() in contents,
        "of simultaneous puts of one key one must win, whole; the file is a mixture",
    )
    await storage.delete(key)


async def _check_unreachable(storage: Storage, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"never kept")
    with refuses(StorageUnavailable, "put while the backend is down"):
        await storage.put("conformance/unreachable", source)
    with refuses(StorageUnavailable, "get while the backend is down"):
        await storage.get("conformance/unreachable", tmp_path / "unreachable")
    await check_close(storage)


async def _check_keys(storage: Storage, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"never kept")
    for key in _BAD_KEYS:
        with refuses(ValueError, f"put with the key {key[:40]!r}"):
            await storage.put(key, source)
        with refuses(ValueError, f"get with the key {key[:40]!r}"):
            await storage.get(key, tmp_path / "never")


async def check_identity_provider(
    provider: IdentityProvider, token: str, username: str, *, unreachable: IdentityProvider | None = None
) -> None:
    """Check that a valid token identifies its owner, and that others are rejected.

    Parameters
    ----------
    provider : IdentityProvider
        The provider, which is closed afterwards.
    token : str
        A valid token.
    username : str
        Its owner.
    unreachable : IdentityProvider, optional
        A provider whose service is down, which must raise IdentityUnavailable.

    Raises
    ------
    Nonconforming
        If a promise of :class:`~collidium.contracts.identity.IdentityProvider` is broken.

    Examples
    --------
    ::

        async def test_my_provider_conforms():
            await check_identity_provider(MyProvider(), "token-of-ada", "ada")
    """
    check_name(provider.name, "an identity provider")
    for _ in range(2):  # the second answer may come from a cache
        identity = await provider.identify(token)
        promise(identity is not None, "a valid token must give its owner, not None")
        owner = identity.username if identity else ""
        promise(owner == username, f"the token belongs to {username!r}, not {owner!r}")
        for bad in (*_BAD_TOKENS, token + "x", token[:-1]):
            await _check_refusal(provider, bad)
    await check_close(provider)
    if unreachable is not None:
        with refuses(IdentityUnavailable, "identify while the service is down"):
            await unreachable.identify(token)
        await check_close(unreachable)


async def _check_refusal(provider: IdentityProvider, token: str) -> None:
    try:
        identity = await provider.identify(token)
    except Exception as error:
        # Untrusted input could cause a response with status 500 or 503.
        raise Nonconforming(f"a bad token {token[:40]!r} must give None, but raises {error!r}") from error
    promise(identity is None, f"a bad token {token[:40]!r} must give None, not {identity!r}")
