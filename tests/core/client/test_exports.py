"""Public names of the client library, and what importing it loads."""

from __future__ import annotations

import inspect
import subprocess
import sys

import collidium.client
import collidium.records
from collidium.client import AsyncClient, Client

#: In addition to the records that calls return.
EXPORTED = {
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
}


def test_what_is_exported_is_what_was_decided() -> None:
    assert set(collidium.client.__all__) == EXPORTED | set(collidium.records.__all__)


def test_everything_exported_is_there_and_documented() -> None:
    for name in collidium.client.__all__:
        thing = getattr(collidium.client, name)
        assert inspect.getdoc(thing), name


def test_both_clients_have_the_same_methods() -> None:
    assert methods(Client) == methods(AsyncClient)


def test_every_call_of_the_async_client_is_a_coroutine_function() -> None:
    for name in set(methods(AsyncClient)) - {"acting_as"}:  # which makes no call
        assert inspect.iscoroutinefunction(getattr(AsyncClient, name)), name


def test_importing_the_client_brings_nothing_heavy() -> None:
    program = "import sys, collidium.client; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert loaded.isdisjoint({"pyarrow", "numpy", "pydantic", "quart", "tortoise", "huggingface_hub"})


def methods(kind: type) -> dict[str, list[tuple[str, object, str]]]:
    """Public methods, each with its parameters' names, defaults and annotations; dunders aside."""
    found = {}
    for name, function in inspect.getmembers(kind, inspect.isfunction):
        if not name.startswith("_"):
            parameters = inspect.signature(function).parameters.values()
            found[name] = [(p.name, p.default, str(p.annotation)) for p in parameters]
    return found
