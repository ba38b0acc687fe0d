"""Operator calls in the client's names, carried out by the platform's own functions."""

from __future__ import annotations

from pydantic import ConfigDict
from quart import Response
from quart_schema import validate_querystring, validate_request

from collidium import operations
from collidium.api.answers import answer
from collidium.api.authentication import request_id, require_operator
from collidium.api.idempotency import idempotent
from collidium.api.schemas import BanBody, FreezeQuery, GrantBody, Text
from collidium.records import Banned, Frozen, Granted
from collidium_plugins.colliderml_compat.names import name_there


class TheirGrant(GrantBody):
    """A grant; there, a reason need not be given."""

    model_config = ConfigDict(alias_generator=name_there)

    reason: Text = "admin_grant"


class TheirBan(BanBody):
    """A ban by default."""

    model_config = ConfigDict(alias_generator=name_there)

    banned: bool = True


class TheirFreeze(FreezeQuery):
    """A freeze by default."""

    frozen: bool = True


@validate_request(TheirGrant)
@idempotent
async def grant(data: TheirGrant) -> Response:
    """Grant credits to an account, or take them."""
    entry = await operations.grant(
        data.hub_username, data.delta, data.reason, actor=require_operator(), http_request_id=request_id()
    )
    granted = Granted(
        hub_username=data.hub_username, new_balance=entry.balance_after, transaction_id=entry.id
    )
    return answer(granted)


@validate_request(TheirBan)
@idempotent
async def ban(data: TheirBan) -> Response:
    """Ban or unban an account."""
    account = await operations.ban(
        data.hub_username, data.banned, actor=require_operator(), http_request_id=request_id()
    )
    return answer(Banned(hub_username=account.hub_username, banned=account.banned))


@validate_querystring(TheirFreeze)
@idempotent
async def freeze(query_args: TheirFreeze) -> Response:
    """Turn the kill switch for new simulation requests on or off."""
    await operations.freeze(query_args.frozen, actor=require_operator(), http_request_id=request_id())
    return answer(Frozen(submissions_frozen=query_args.frozen))
