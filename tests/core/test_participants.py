"""Participants as values and as text in the database."""

import pytest

from collidium.challenges import Participant


@pytest.mark.parametrize(
    ("text", "participant", "team_id"),
    [
        ("account:12", Participant.account(12), None),
        ("team:3", Participant.team(3), 3),
        ("baseline:00ff", Participant.baseline("00ff"), None),
        ("baseline:", Participant.baseline(""), None),
    ],
)
def test_participants_keep_their_text(text: str, participant: Participant, team_id: int | None) -> None:
    assert (Participant.parse(text), str(participant), participant.team_id) == (participant, text, team_id)


@pytest.mark.parametrize("text", ["", "team", "team:", "team:x", "group:1"])
def test_other_texts_are_no_participants(text: str) -> None:
    with pytest.raises(ValueError, match=r"no participant|invalid literal"):
        Participant.parse(text)
