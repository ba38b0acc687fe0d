"""Submission of a model without scripts, and its state."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from tests.core.submissions import models
from tests.waiting import eventually

from collidium.testing.server import ServerProcess

from .visiting import Visitor

pytestmark = pytest.mark.usefixtures("shared_truth")

SUBMIT = "/leaderboard/tracking/submit"
MINE = "/leaderboard/mine/models"


def test_a_model_is_sent_and_shown_until_scored(web: ServerProcess, token: Callable[[str], str]) -> None:
    with Visitor(web.base_url) as anna:
        anna.sign_in(token("sends-models"))
        assert "No models yet" in anna.get(MINE).text
        assert f'action="{SUBMIT}-model"' in anna.get(SUBMIT).text

        def send(manifest: str, secret: str) -> tuple[int, str]:
            answer = anna.post(
                f"{SUBMIT}-model",
                data={"csrf_token": secret},
                files={"model": ("model.onnx", models.layers()), "manifest": ("manifest.toml", manifest)},
                headers=anna.own,
            )
            return answer.status_code, answer.text

        good = models.MANIFEST.format(task="tracking")
        assert send(good, "wrong")[0] == 403
        status, text = send(good.replace("volume_id", "particle_id"), anna.csrf)
        assert (status, "particle_id" in text) == (422, True)
        assert send(good, anna.csrf)[0] == 303
        eventually(lambda: "Refresh" not in anna.get(MINE).headers)
        address = re.search(r'href="(/leaderboard/submissions/[0-9a-f]{32})"', anna.get(MINE).text)
        assert address is not None
        page = anna.get(address[1]).text
        assert "Run by the server" in page
        assert "4 parameters" in page
