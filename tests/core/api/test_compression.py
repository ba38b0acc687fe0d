"""Responses that are compressed, each encoding with its own ETag, and those that are not."""

from __future__ import annotations

import gzip
from collections.abc import Iterator

import httpx
import pyarrow as pa
import pytest

from collidium.testing.server import ServerProcess

from .conftest import SUBMIT, ok, parquet, signed_in, spoiled

#: Bodies are compressed whatever they were read from.
pytestmark = pytest.mark.one_database

#: A server of its own: the leaderboard is these submissions.
PLATFORM: dict[str, str] = {}
BOARD = "/v1/leaderboard/tracking?all=true"
ENCODINGS = ("gzip", "zstd")


@pytest.fixture(scope="module")
def bea(platform: ServerProcess) -> Iterator[httpx.Client]:
    with signed_in(platform, "bea") as client:
        yield client


@pytest.fixture(scope="module")
def board(bea: httpx.Client, oracle: pa.Table) -> str:
    """A leaderboard of a few kilobytes."""
    for keep in (0.5, 0.6, 0.7, 0.8):
        ok(bea.post(SUBMIT, content=parquet(spoiled(oracle, keep))))
    return BOARD


def sent(client: httpx.Client, path: str, encoding: str = "identity", **headers: str) -> httpx.Response:
    """The response and its body as they were sent."""
    with client.stream("GET", path, headers={"Accept-Encoding": encoding, **headers}) as response:
        response._content = b"".join(response.iter_raw())
    return response


def unpacked(response: httpx.Response) -> bytes:
    match response.headers.get("Content-Encoding"):
        case "gzip":
            return gzip.decompress(response.content)
        case "zstd":
            with pa.CompressedInputStream(pa.BufferReader(response.content), "zstd") as stream:
                return bytes(stream.read())
    return response.content


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_json_is_compressed_by_accept_encoding(anonymous: httpx.Client, board: str, encoding: str) -> None:
    plain, packed = sent(anonymous, board), sent(anonymous, board, encoding)
    assert packed.headers["Content-Encoding"] == encoding
    assert len(packed.content) == int(packed.headers["Content-Length"]) < len(plain.content) / 2
    assert unpacked(packed) == plain.content
    for response in (plain, packed):
        assert "Accept-Encoding" in response.headers["Vary"]


@pytest.mark.parametrize(
    ("accepted", "encoding"),
    [
        ("gzip, deflate, br, zstd", "zstd"),
        ("gzip;q=1, zstd;q=0.5", "gzip"),
        ("*", "zstd"),
        ("br", None),
        ("gzip;q=0", None),
        ("identity, gzip;q=0.5", None),
        ("gzip;q=nonsense", None),
        ("", None),
    ],
)
def test_encoding_is_the_one_that_the_caller_prefers(
    anonymous: httpx.Client, board: str, accepted: str, encoding: str | None
) -> None:
    assert sent(anonymous, board, accepted).headers.get("Content-Encoding") == encoding


def test_every_encoding_has_its_own_validator(anonymous: httpx.Client, board: str) -> None:
    tags = {
        encoding: sent(anonymous, board, encoding).headers["ETag"] for encoding in ("identity", *ENCODINGS)
    }
    assert len(set(tags.values())) == 3
    for encoding, tag in tags.items():
        again = sent(anonymous, board, encoding, **{"If-None-Match": tag})
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["ETag"] == tag
        assert "Accept-Encoding" in again.headers["Vary"]
        assert sent(anonymous, board, encoding, **{"If-Match": tag}).status_code == 200
        assert sent(anonymous, board, "identity", **{"If-Match": f'"other", {tag}'}).status_code == 200
        assert sent(anonymous, board, encoding, **{"If-Match": '"other-gzip"'}).status_code == 412


def test_public_pages_have_validators_and_are_compressed(anonymous: httpx.Client, board: str) -> None:
    for path in ("/", "/leaderboard/tracking", "/docs", "/models"):
        page = sent(anonymous, path, "gzip")
        assert page.headers["Content-Encoding"] == "gzip"
        assert page.headers["Cache-Control"] == "no-cache"
        again = sent(anonymous, path, "gzip", **{"If-None-Match": page.headers["ETag"]})
        assert (again.status_code, again.headers["ETag"]) == (304, page.headers["ETag"])


def test_downloads_stay_as_they_are(anonymous: httpx.Client, board: str) -> None:
    for path in (
        "/v1/challenges/tracking/results?format=csv&all=true",
        "/v1/challenges/tracking/results?all=true",
        "/v1/datasets/sample/events/0",
    ):
        response = sent(anonymous, path, "gzip")
        assert response.status_code in {200, 404}, response.content
        if response.status_code == 200:
            assert "Content-Encoding" not in response.headers, path
    ranged = sent(anonymous, board, "gzip", Range="bytes=0-99")
    assert "Content-Encoding" not in ranged.headers


def test_answers_with_a_secret_are_not_compressed(bea: httpx.Client, board: str) -> None:
    listed = sent(bea, "/v1/me/submissions", "gzip")
    assert len(unpacked(listed)) > 1024
    assert listed.headers["Content-Encoding"] == "gzip"  # by a token, which no other site can send
    by_browser = sent(bea, "/v1/me/submissions", "gzip", Cookie="collidium_session=x")
    assert "Content-Encoding" not in by_browser.headers
