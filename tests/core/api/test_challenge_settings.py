"""A setting of a challenge, declared once, is wherever settings are given, kept and shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, get_type_hints

import msgspec
import pytest
from pydantic import ValidationError
from tests.core.cli.conftest import Caller

from collidium.api.operator_schemas import ChallengeBody
from collidium.challenges.models import Challenge
from collidium.cli.output import plain
from collidium.organising.changes import problems_of_new
from collidium.presentation.challenge_settings import heading_rows, setting_rows
from collidium.records import Challenge as ChallengeRecord
from collidium.records import as_json
from collidium.records.challenge_settings import (
    CHALLENGE_SETTINGS,
    ChallengeSetting,
    ChallengeSettings,
    SettingOptions,
)
from collidium.testing.server import ServerProcess

from .conftest import ok, operating

NAME, OTHER = "spring-2099", "autumn-2099"
#: Not a column, but the version of the truth.
SPLIT = "public_percent"


def value_of(number: int, field: ChallengeSetting) -> Any:
    """A value that is not the default, and of a text or a number that no other has."""
    if field.type is datetime:
        return datetime(2099, 1, 1, tzinfo=UTC) + timedelta(days=number)
    if field.type is bool:
        return not field.default
    return field.maximum - number if field.is_number else (field.choices or [f"some-{field.name}"])[-1]


VALUES: dict[str, Any] = {
    field.name: value_of(number, field) for number, field in enumerate(CHALLENGE_SETTINGS)
}
# Teams are fixed before it closes.
VALUES["closes_at"] += timedelta(days=100)


def test_every_setting_has_a_column_and_a_type() -> None:
    columns = Challenge._meta.fields_map.keys()
    assert {field.name for field in CHALLENGE_SETTINGS} - columns == {SPLIT}
    typed = get_type_hints(SettingOptions)
    assert typed == {name: get_type_hints(ChallengeSettings)[name] for name in VALUES}


def test_settings_have_no_null_or_hidden_characters() -> None:
    """Null characters, and those that are invisible or reverse a text."""
    names = [field.name for field in CHALLENGE_SETTINGS if field.is_text and not field.is_document]
    for field in CHALLENGE_SETTINGS:
        with pytest.raises(ValidationError, match=field.name):
            ChallengeBody.model_validate({field.name: "a\0b"})
    found = {field for field, _ in problems_of_new(NAME, dict.fromkeys(names, "a\u202eb"))}
    assert found == {*names}


def test_every_setting_is_shown_with_a_challenge() -> None:
    """What a heading does not show has its own words there."""
    challenge = ChallengeRecord(**VALUES, name=NAME, task="tracking", state="open", phase="public")
    rows, texts = setting_rows(challenge), " ".join(map(str, setting_rows(challenge).values()))
    assert [name for name, value in VALUES.items() if str(value) not in texts] == ["rules"]
    labels = {field.label.lower() for field in CHALLENGE_SETTINGS if field.is_in_heading}
    assert heading_rows(challenge).keys() == labels
    assert rows.keys() | labels | {"rules"} == {field.label.lower() for field in CHALLENGE_SETTINGS}
    assert as_json(challenge).keys() >= VALUES.keys()


@pytest.mark.parametrize(
    "name", ["title", "submissions_per_day", "final_submissions", "practice", "rewarded"]
)
def test_a_challenge_without_what_each_has_is_rejected(name: str) -> None:
    found = as_json(ChallengeRecord(**VALUES, name=NAME, task="tracking", state="open"))
    assert msgspec.convert(found, ChallengeRecord, strict=False).name == NAME
    del found[name]
    with pytest.raises(msgspec.ValidationError, match=name):
        msgspec.convert(found, ChallengeRecord, strict=False)


def test_every_setting_is_set_changed_and_recorded(fresh_platform: ServerProcess) -> None:
    run, rules = Caller(fresh_platform, "organiser"), fresh_platform.directory / "rules.md"
    rules.write_text(VALUES["rules"])
    made = run.data("challenge", "new", NAME, "--task", "tracking", *options(VALUES | {"rules": rules}))
    changed = {name: value for name, value in VALUES.items() if name != SPLIT}
    run.data("challenge", "new", OTHER, "--task", "tracking", "--opens", "2098-01-01T00:00Z")
    edited = run.data("challenge", "edit", OTHER, *options(changed | {"rules": rules}))
    with operating(fresh_platform) as admin:
        edit, _, new = ok(admin.get("/admin/audit"))
        page = admin.get(f"/leaderboard/{NAME}").text
        results = admin.get(f"/leaderboard/{NAME}/results").text
    for recorded, found, asked in ((new, made, VALUES), (edit, edited, changed)):
        shown = {name: plain(value) for name, value in asked.items()}
        assert {name: found[name] for name in shown} == shown
        assert recorded["details"].keys() == asked.keys() - {"rules"}
    listed = [field.name for field in CHALLENGE_SETTINGS if field.is_in_heading]
    assert [
        name for name in listed if str(VALUES[name]) not in page or str(VALUES[name]) not in results
    ] == []


def options(values: Mapping[str, Any]) -> Iterator[str]:
    """Yield the options of a command for these settings."""
    for field in CHALLENGE_SETTINGS:
        name = field.option or f"--{field.name.replace('_', '-')}"
        if values.get(field.name) is True:
            yield name
        elif field.name in values:
            yield from (name, str(plain(values[field.name])))
