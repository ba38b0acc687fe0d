"""Who am I, and small checks."""

from __future__ import annotations

import json

from quart import Response

from collidium_plugins.local_hub.cards import BadCard, read_card
from collidium_plugins.local_hub.documents import account_document
from collidium_plugins.local_hub.failures import invalid, not_signed_in
from collidium_plugins.local_hub.web.context import READERS, caller, in_thread, json_response, sent_document


async def whoami() -> Response:
    """``GET /api/whoami-v2``"""
    account = caller()
    if account is None:
        raise not_signed_in()
    return json_response(json.dumps(account_document(account)))


async def validate_yaml() -> Response:
    """``POST /api/validate-yaml``: may this text be a README?"""
    content = (await sent_document()).get("content")
    if not isinstance(content, str):
        raise invalid("The content is a string")
    try:
        await in_thread(READERS, read_card, content)
    except BadCard as error:
        errors = [{"message": f"The front matter cannot be read: {error}"}]
        return json_response(
            json.dumps({"error": "Invalid front matter", "errors": errors, "warnings": []}), 400
        )
    return json_response('{"errors": [], "warnings": []}')
