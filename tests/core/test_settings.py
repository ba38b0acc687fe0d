"""Settings from the environment and .env; all problems are reported."""

from decimal import Decimal
from pathlib import Path

import pytest

from collidium.errors import ConfigurationError
from collidium.settings import PREFIX, Settings, as_written, load, without_password


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))


def test_everything_has_a_default(tmp_path: Path) -> None:
    settings = load()
    assert settings.data_dir == tmp_path / ".local/share/collidium"
    assert settings.database == f"sqlite:///{settings.data_dir}/collidium.sqlite3"
    assert settings.hub == "http://127.0.0.1:8000/hub"
    assert settings.admin_token is None


def test_every_setting_has_a_line_of_help() -> None:
    for name, field in Settings.model_fields.items():
        assert field.description, name
        assert field.description.endswith("."), name


def test_arguments_override_environment_and_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".env").write_text("PLATFORM_PORT=1111\nPLATFORM_WORKERS=3\nSOMEBODY_ELSES=1\n")
    monkeypatch.setenv("PLATFORM_PORT", "2222")
    assert (load().port, load().workers) == (2222, 3)
    assert load(port=3333).port == 3333


def test_money_is_decimal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLATFORM_SIGNUP_GRANT", "0.1")
    assert load().signup_grant == Decimal("0.1")


def test_lists_are_separated_by_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLATFORM_PLUGINS_BLOCKED", "tracking, local_hub,,")
    assert load().plugins_blocked == ("tracking", "local_hub")


def test_all_problems_are_reported_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLATFORM_PORT", "eighty")
    monkeypatch.setenv("PLATFORM_SIGNUP_GRANT", "NaN")
    monkeypatch.setenv("PLATFORM_DATABSE_URL", "sqlite:///x")
    (tmp_path / ".env").write_text("PLATFORM_WORKER=2\n")
    with pytest.raises(ConfigurationError) as caught:
        load()
    problems = [problem["detail"] for problem in caught.value.errors]
    assert [line.partition(":")[0] for line in problems] == [
        "PLATFORM_PORT",
        "PLATFORM_SIGNUP_GRANT",
        "PLATFORM_DATABSE_URL",
        "PLATFORM_WORKER",
    ]
    for line in problems:
        assert line in caught.value.detail


def test_the_address_of_a_client_is_no_unknown_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLATFORM_BACKEND", "http://127.0.0.1:8000")
    load()


def test_the_admin_token_is_never_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADMIN_TOKEN", "a-very-secret-word")
    settings = load()
    assert settings.admin_token is not None
    assert settings.admin_token.get_secret_value() == "a-very-secret-word"
    assert "a-very-secret-word" not in repr(settings) + settings.model_dump_json()


def test_a_bad_secret_is_not_in_the_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLATFORM_DATABASE_URL", "postgres://u:pass-word@h/n")
    monkeypatch.setenv("PLATFORM_PORT", "pass-word-too")
    with pytest.raises(ConfigurationError) as caught:
        load()
    assert "pass-word" not in caught.value.detail


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", "http://127.0.0.1:8000"),
        ("0.0.0.0", "http://127.0.0.1:8000"),
        ("::", "http://127.0.0.1:8000"),
        ("::1", "http://[::1]:8000"),
        ("collidium.example.org", "http://collidium.example.org:8000"),
    ],
)
def test_the_server_knows_where_it_is_reached(host: str, address: str) -> None:
    assert load(host=host).base_url == address


def test_the_hub_address_has_no_trailing_slash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"{PREFIX}HUB_URL", "https://hub.example.org/")
    assert load().hub == "https://hub.example.org"


@pytest.mark.parametrize("user", ["me:secret", "hf_secret"])
def test_a_hub_s_address_has_no_password(monkeypatch: pytest.MonkeyPatch, user: str) -> None:
    """Pages and datasets link the hub."""
    monkeypatch.setenv("PLATFORM_HUB_URL", f"https://{user}@hub.example")
    with pytest.raises(ConfigurationError, match="without user name and password") as refused:
        load()
    assert "secret" not in str(refused.value)


def test_tables_are_written_as_names_with_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLATFORM_CHANNELS", "ttbar=90, single_muon = 5")
    channels = load().channels
    assert channels == {"ttbar": 90, "single_muon": 5}
    assert as_written(channels) == "ttbar=90, single_muon=5"


@pytest.mark.parametrize("table", ["ttbar", "ttbar=90,ttbar=1", "=90", "ttbar=fast", "ttbar=-1", "ttbar=nan"])
def test_a_table_that_cannot_be_read_is_refused(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLATFORM_CHANNELS", table)
    with pytest.raises(ConfigurationError, match="PLATFORM_CHANNELS"):
        load()


@pytest.mark.parametrize(("mode", "runner"), [("real", ""), ("real", "mock"), ("mock", "slurm")])
def test_a_runner_that_the_mode_contradicts_is_refused(
    mode: str, runner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLATFORM_RUN_MODE", mode)
    monkeypatch.setenv("PLATFORM_RUNNER", runner)
    with pytest.raises(ConfigurationError, match="settings: PLATFORM_RUN"):
        load()


@pytest.mark.parametrize(
    ("issuer", "is_taken"),
    [
        ("https://sso.example.org/realms/lab", True),
        ("http://127.0.0.1:8080/dex", True),
        ("http://sso.example.org", False),
        ("http://127.0.0.1.example.org", False),
        ("https://user@sso.example.org", False),
        ("https://sso.example.org?a=b", False),
        ("https://" + "a" * 300, False),
    ],
)
def test_issuer_is_reached_encrypted(issuer: str, is_taken: bool) -> None:
    if is_taken:
        assert load(oidc_issuer=issuer).oidc_issuer == issuer
    else:
        with pytest.raises(ConfigurationError, match="OIDC_ISSUER"):
            load(oidc_issuer=issuer)


def test_a_former_name_holds_unless_the_new_one_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLATFORM_PLATFORM_TAG", "ours")
    assert load().tag == "ours"
    monkeypatch.setenv("PLATFORM_TAG", "ours")
    assert load().tag == "ours"
    monkeypatch.setenv("PLATFORM_TAG", "theirs")
    with pytest.raises(ConfigurationError, match="PLATFORM_PLATFORM_TAG: it is called PLATFORM_TAG now"):
        load()


@pytest.mark.parametrize(
    ("url", "text", "shown"),
    [
        ("postgres://u:x@db/n", "onnxruntime x", "onnxruntime x"),
        (
            "postgres://u:x@db/n",
            "cannot reach postgres://u:x@db/n",
            "cannot reach postgres://u:********@db/n",
        ),
        ("postgres://u:e@db/n", 'for user "e" of the database', 'for user "********" of the database'),
        ("postgres://u@db/n?password=a%40b&x=1", "password=a@b or a%40b", "password=******** or a%40b"),
        ("redis://h/?password=s3cret", "(redis://h/?password=s3cret), ", "(redis://h/?password=********), "),
        ("https://token@hub.example", "at https://token@hub.example", "at https://********@hub.example"),
        ("postgres://u:1@db/n", "128 groups in 1 s", "128 groups in 1 s"),
    ],
)
def test_a_password_is_masked_as_a_whole_value(url: str, text: str, shown: str) -> None:
    assert without_password(url, text) == shown


def test_public_truth_pays_in_mock_mode_or_by_choice() -> None:
    assert load().pays_on_public_truth
    assert not load(run_mode="real", runner="local").pays_on_public_truth
    assert load(run_mode="real", runner="local", rewards_on_public_truth=True).pays_on_public_truth
    assert not load(rewards_on_public_truth=False).pays_on_public_truth
