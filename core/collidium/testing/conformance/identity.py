"""The contract of an identity provider."""

from __future__ import annotations

from collidium.contracts.identity import IdentityProvider, IdentityUnavailable
from collidium.testing.conformance.promise import Nonconforming, check_close, check_name, promise, refuses

#: Invalid and hostile tokens.
_BAD_TOKENS = ("", "unknown", "a b", "ü", "x\r\nX-Injected: 1", "\0", "../../", "x" * 100_000)


async def check_identity_provider(
    provider: IdentityProvider, token: str, username: str, *, unreachable: IdentityProvider | None = None
) -> None:
    """Check that a valid token identifies its owner, and others nobody.

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
