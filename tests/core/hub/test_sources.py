"""The choice of the hub, and of the token for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from collidium.contracts.identity import OWN_PREFIX
from collidium.errors import ConfigurationError, InvalidInput
from collidium.hub.sources import HubDataset, find_hub, locate, save_token

TOKEN = "hf_of_the_environment"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("PLATFORM_HUB_URL", "PLATFORM_BACKEND", "HF_ENDPOINT", "HF_TOKEN", "HF_TOKEN_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


def test_hub_is_argument_then_environment_then_backend(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert find_hub().endpoint == "http://127.0.0.1:8000/hub"
    monkeypatch.setenv("PLATFORM_BACKEND", "https://collidium.example/")
    assert find_hub().endpoint == "https://collidium.example/hub"
    monkeypatch.setenv("HF_ENDPOINT", "https://huggingface.co/")
    assert find_hub().endpoint == "https://huggingface.co"
    monkeypatch.setenv("PLATFORM_HUB_URL", "https://hub.example/at/")
    assert find_hub().endpoint == "https://hub.example/at"
    assert find_hub("http://other.example").endpoint == "http://other.example"
    monkeypatch.setenv("PLATFORM_HUB_URL", "local")
    assert find_hub().endpoint == "https://collidium.example/hub"


@pytest.mark.parametrize(
    "address",
    ["hub.example", "ftp://hub.example", "https://", "https://me:secret@hub.example", "http://h?q=1"],
)
def test_invalid_addresses_are_rejected_without_showing_them(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", address)
    with pytest.raises(ConfigurationError, match="HF_ENDPOINT") as raised:
        find_hub()
    assert "secret" not in raised.value.detail


def test_the_token_is_the_argument_then_hf_token_then_the_login(monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_hub().token is None
    save_token("http://127.0.0.1:8000", "hf_of_the_login")
    assert find_hub().token == "hf_of_the_login"
    assert find_hub("https://hub.example").token is None
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    assert find_hub().token == find_hub("https://hub.example").token == TOKEN
    assert find_hub(token="hf_given").token == "hf_given"
    assert find_hub(token="").token is None
    assert TOKEN not in repr(find_hub())
    monkeypatch.setenv("HF_TOKEN", f"{OWN_PREFIX}of_the_platform")
    assert find_hub().token is None, "no hub gets a token of the platform"


def test_the_token_of_hf_auth_login_is_for_its_site_only(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("hf_of_the_site")
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "token"))
    assert find_hub("https://huggingface.co").token == "hf_of_the_site"
    assert find_hub("https://hub.example").token is None
    assert find_hub().token is None


def test_a_directory_wins_over_a_repository_of_the_same_name(tmp_path: Path) -> None:
    assert locate("alice/events") == HubDataset("alice/events", "http://127.0.0.1:8000/hub")
    (tmp_path / "alice" / "events").mkdir(parents=True)
    assert locate("alice/events") == Path("alice/events")
    assert locate(tmp_path) == tmp_path


@pytest.mark.parametrize(
    "source", ["events", "./events", "a/b/c", "", "~/absent", Path("alice/events")], ids=str
)
def test_an_unknown_source_is_reported(source: str | Path) -> None:
    with pytest.raises(InvalidInput, match="neither an existing directory, nor a hub repository"):
        locate(source)


def test_a_repository_is_named_by_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    own = "http://127.0.0.1:8000/hub"
    assert locate(f"{own}/datasets/alice/events") == HubDataset("alice/events", own, token=TOKEN)
    strange = "https://elsewhere.example/datasets/alice/events"
    assert locate(strange) == HubDataset("alice/events", "https://elsewhere.example", token=None)
    assert locate(strange, token="hf_given") == HubDataset(
        "alice/events",
        "https://elsewhere.example",
        token="hf_given",
    )
    assert locate(f"{strange}/tree/v%2F1").revision == "v/1"
    assert locate(f"{strange}/tree/v1", revision="v2").revision == "v2"
    with pytest.raises(InvalidInput, match=r"is not on the hub https://hub\.example"):
        locate(strange, endpoint="https://hub.example")
    with pytest.raises(InvalidInput, match="must end with /datasets/NAMESPACE/NAME"):
        locate("https://elsewhere.example/alice/events")
