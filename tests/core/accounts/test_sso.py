"""Accounts of single sign-on: owners, names and tokens."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from decimal import Decimal

import pytest
from tortoise.timezone import now

from collidium import accounts
from collidium.accounts import sso
from collidium.accounts.models import SsoToken
from collidium.contracts.identity import OWN_PREFIX, Identity
from collidium.errors import Forbidden, UpstreamError

LAB, OTHER = "https://sso.example.org/realms/lab", "https://sso.example.com"

pytestmark = pytest.mark.usefixtures("connected")


async def test_account_is_of_issuer_and_subject() -> None:
    ada = await sso.recognise(LAB, "1", "Ada", [])
    assert ada == "ada.sso"
    assert await sso.recognise(LAB, "1", "grace", []) == ada, "a new name is the same person"
    assert await sso.recognise(LAB, "2", "ada", []) == "ada-2.sso"
    assert await sso.recognise(OTHER, "1", "ADA", []) == "ada-3.sso"


@pytest.mark.parametrize(
    ("preferred", "name"),
    [
        ("", "user.sso"),
        ("../é", "user.sso"),
        ("=cmd|x", "cmd-x.sso"),
        ("ada@example.org", "ada-example.org.sso"),
        ("a" * 10_000, "a" * 64 + ".sso"),
        ("erased-1", "erased-1.sso"),
    ],
)
async def test_names_are_names_of_accounts(preferred: str, name: str) -> None:
    assert await sso.recognise(LAB, "1", preferred, []) == name
    assert (await accounts.recognise(name, signup_grant=Decimal(10))).credits == 10


async def test_no_name_of_another_account_is_taken() -> None:
    await accounts.set_banned("ada.sso", True)
    assert await sso.recognise(LAB, "1", "ada", []) == "ada-2.sso"


async def test_first_sign_ins_at_once_make_one_account() -> None:
    names = await asyncio.gather(
        *(sso.recognise(LAB, str(number // 4), "ada", []) for number in range(12)),
    )
    assert len(set(names)) == 3
    assert all(len(set(names[start : start + 4])) == 1 for start in (0, 4, 8))


@pytest.mark.parametrize("subject", ["", "x" * 256, "x" * 10_000, "a\0b"])
async def test_invalid_subjects_are_rejected(subject: str) -> None:
    with pytest.raises(UpstreamError, match="subject"):
        await sso.recognise(LAB, subject, "ada", [])


async def test_token_acts_for_its_account_with_its_groups() -> None:
    name = await sso.recognise(LAB, "1", "ada", ["atlas", "two words", "x" * 200])
    token, _ = await sso.issue(name)
    assert token.startswith(OWN_PREFIX)
    groups = frozenset({"atlas.sso"})
    assert await sso.owner(token, LAB) == Identity("ada.sso", memberships=groups, on_hub=False)
    await sso.recognise(LAB, "1", "ada", ["cms"])
    assert (await sso.owner(token, LAB) or Identity("x")).memberships == {"cms.sso"}
    for other in ("", OWN_PREFIX, token + "x", OWN_PREFIX + "\udcff"):
        assert await sso.owner(other, LAB) is None


async def test_new_token_replaces_the_one_before_and_no_session() -> None:
    name = await sso.recognise(LAB, "1", "ada", [])
    session, _ = await sso.issue(name, session_seconds=60)
    assert await sso.token_ends_at(name) is None
    first, _ = await sso.issue(name)
    second, ends_at = await sso.issue(name)
    assert [await sso.owner(token, LAB) is not None for token in (session, first, second)] == [
        True,
        False,
        True,
    ]
    assert await sso.token_ends_at(name) == ends_at


async def test_tokens_end_with_the_trust_in_their_issuer() -> None:
    token, _ = await sso.issue(await sso.recognise(LAB, "1", "ada", []))
    assert await sso.owner(token, LAB) is not None
    assert [await sso.owner(token, issuer) for issuer in (OTHER, "")] == [None, None]


async def test_account_without_a_name_tries_few() -> None:
    names = [await sso.recognise(LAB, str(number), "", []) for number in range(12)]
    assert len(set(names)) == 12
    assert names[8] == "user-9.sso"
    assert not {"user-10.sso", "user-11.sso"} & set(names)


async def test_token_ends() -> None:
    name = await sso.recognise(LAB, "1", "ada", [])
    session, ends_at = await sso.issue(name, session_seconds=0)
    token, _ = await sso.issue(name)
    assert ends_at <= now()
    assert await sso.owner(session, LAB) is None
    await sso.prune(now() + timedelta(seconds=1))
    assert await SsoToken.all().count() == 1
    assert await sso.owner(token, LAB) is not None


async def test_accounts_of_the_hub_have_no_token_of_ours() -> None:
    await accounts.recognise("ada", signup_grant=Decimal(0))
    with pytest.raises(Forbidden, match="account of the hub"):
        await sso.issue("ada")


async def test_erased_account_is_not_found_by_its_subject() -> None:
    name = await sso.recognise(LAB, "1", "ada", [])
    token, _ = await sso.issue(name)
    account = await accounts.recognise(name, signup_grant=Decimal(3))
    await accounts.forget(account.id, f"erased-{account.id}", banned=False)
    assert await sso.owner(token, LAB) is None
    again = await accounts.recognise(await sso.recognise(LAB, "1", "ada", []), signup_grant=Decimal(0))
    assert (again.id != account.id, again.credits) == (True, 0)
