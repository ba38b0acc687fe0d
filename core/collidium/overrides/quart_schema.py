"""quart-schema: responses skip the conversion of models, which is for what is none.

The extension wraps ``make_response`` of an application in a conversion of the returned value, also of values
that are responses already. No issue is known; it can go when the extension leaves responses alone.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, cast

from quart import Quart, Response

TESTED: Final = {"quart-schema": ("0.22.0", "0.25.0")}


def convert_models_only(app: Quart, plain: Callable[[Any], Awaitable[Any]]) -> None:
    """Use ``plain``, the application's own ``make_response``, for values that are responses."""
    converting = app.make_response

    async def make_response(value: Any) -> Response:
        make = plain if isinstance(value, Response) else converting
        return cast(Response, await make(value))

    app.make_response = make_response  # type: ignore[method-assign,assignment]  # Quart has no hook for it
