"""How challenges are shown: what is left of quotas, and what a split of the events does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collidium.presentation.quantities import minute_text, time_until

if TYPE_CHECKING:
    from collidium.records import Quota, Rescoring, SplitPreview


def quota_text(quota: Quota) -> str:
    """Describe how many submissions are left, and until when."""
    if quota.state == "upcoming":
        opens = minute_text(quota.opens_at)
        return f"it opens on {opens}, with {quota.submissions_per_day} submissions a day then"
    if quota.state == "closed":
        return f"it closed on {minute_text(quota.closes_at)}"
    if quota.reason:
        return f"it accepts no submissions: {quota.reason}"
    text = f"{quota.submissions_left} of {quota.submissions_per_day} submissions are left today"
    if quota.state == "practice":
        return f"{text}, for practice: it closed on {minute_text(quota.closes_at)}"
    if quota.closes_at is None:
        return text
    return f"{text}; it closes on {minute_text(quota.closes_at)}, in {time_until(quota.closes_at)}"


def split_texts(found: Rescoring) -> list[str]:
    """Return what a rescoring with a new split changes, and a warning; empty without a split."""
    if found.public_percent is None:
        return []
    part = f"Scores are those on {found.public_percent} per cent of the events until the challenge closes"
    texts = [f"{part}, those on the others then. This cannot be undone."]
    if found.seen_whole:
        texts.append(
            f"Warning: participants have seen scores of {found.seen_whole:,} submissions on all events, "
            "those of the final part included."
        )
    return texts


def closing_text(preview: SplitPreview) -> str:
    """Describe which tasks and challenges a public part closes to submissions; empty if none."""
    if not preview.closes:
        return ""
    until = f"closes on {minute_text(preview.until)}" if preview.until else "is closed by command"
    closed = ", ".join(preview.closes)
    return (
        f"With {preview.public_percent} per cent public, {closed} will accept no submissions until "
        f"{preview.challenge} {until}: its scores would reveal the events that are held back."
    )
