"""The client library: all calls of a Collidium server, for users and operators.

::

    from collidium.client import Client

    with Client() as client:
        receipt = client.submit("tracking", "predictions.parquet")
        print(receipt.scores, receipt.credits_earned)
        request = client.simulate(preset="ttbar-quick")
        print(client.wait(request.request_id).output_hub_repo)

``simulate`` and ``score`` run on this machine without a server.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from collidium import records
from collidium.client.calls import EventData
from collidium.client.clients import AsyncClient, Client
from collidium.client.connection import version_mismatch
from collidium.hub.sources import forget_token, login_file, save_token
from collidium.order import ORDER_FIELDS, Order, OrderField, order_text

# Records that calls return.
from collidium.records import *  # noqa: F403 -- its __all__

if TYPE_CHECKING:
    from collidium.client.local_scoring import score
    from collidium.client.local_simulation import Simulated, simulate
    from collidium.client.predictions import write_predictions

__all__ = [
    "ORDER_FIELDS",
    "AsyncClient",
    "Client",
    "EventData",
    "Order",
    "OrderField",
    "Simulated",
    "forget_token",
    "login_file",
    "order_text",
    "save_token",
    "score",
    "simulate",
    "version_mismatch",
    "write_predictions",
]
__all__ += records.__all__

#: Modules of the functions that need pyarrow; they are imported on first use.
_ON_DEMAND: Final = {
    "Simulated": "local_simulation",
    "score": "local_scoring",
    "simulate": "local_simulation",
    "write_predictions": "predictions",
}


def __getattr__(name: str) -> object:
    if name in _ON_DEMAND:
        return getattr(import_module(f"{__name__}.{_ON_DEMAND[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
