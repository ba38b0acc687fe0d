"""The receiver that the documents show works with what is really sent."""

from __future__ import annotations

import ssl
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import pytest
import trustme
from tests.core.outbox.conftest import HOST, Post
from tests.documents import ROOT, code_blocks

from collidium import outbox
from collidium.outbox.models import Delivery


def the_example() -> str:
    (block,) = [b for b in code_blocks(ROOT / "docs/webhooks.md") if b.language == "python"]
    assert Path(__file__).name in block.remark
    return block.code


async def test_the_documented_receiver_verifies_and_deduplicates(
    post: Post,
    authority: trustme.CA,
    trusted: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # The proxy that speaks TLS is left out: the receiver's own socket does.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(HOST).configure_cert(context)
    example: dict[str, Any] = {"__name__": "example"}
    first = await outbox.register(1, post.secrets)
    monkeypatch.setenv("COLLIDIUM_WEBHOOK_SECRET", str(first.secret))
    exec(the_example(), example)  # noqa: S102 -- the page's own example
    server = example["ThreadingHTTPServer"](("127.0.0.1", 0), example["Receiver"])
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        await outbox.register(1, post.secrets, url=f"https://{HOST}:{server.server_address[1]}/")
        record = {"request_id": "r1", "state": "completed", "output_hub_repo": None}
        await outbox.announce("job", [1], "r1", record)
        post.clock.forward(seconds=1)
        assert await post.deliver() == 1
        assert [d.last_status for d in await post.log()] == [204]
        # Sent a second time, as after a killed process.
        await Delivery.all().update(state="pending", next_attempt_at=post.clock.moment)
        assert await post.deliver() == 1
        forged = await _forge(server.server_address[1], trusted)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert forged == 400
    assert capsys.readouterr().out == "r1 completed None\n"


async def _forge(port: int, trusted: Path) -> int:
    """The answer to a sender who does not know the secret."""
    context = ssl.create_default_context(cafile=str(trusted))
    context.check_hostname = False  # it is called by its address
    headers = {"webhook-id": "evt_1", "webhook-timestamp": "1", "webhook-signature": "v1,AAAA"}
    async with httpx.AsyncClient(verify=context, trust_env=False) as client:
        return (await client.post(f"https://127.0.0.1:{port}/", json={}, headers=headers)).status_code
