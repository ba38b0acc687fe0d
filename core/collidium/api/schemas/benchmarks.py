"""What is asked of tasks, submissions and leaderboards."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from collidium.api.answers import Page
from collidium.api.schemas.base import Body, example
from collidium.benchmarks.submissions.links import LONGEST_LINK


class LeaderboardQuery(Page):
    """Query of a leaderboard."""

    model_config = ConfigDict(frozen=True)  # pages are kept by what was asked for

    pareto: bool = Field(False, description="Only the places on the Pareto front.")
    hub_username: str | None = Field(None, max_length=96, description="Only the places of this account.")
    model_repo: str | None = Field(
        None, max_length=200, description="Only the places of this hub model, NAMESPACE/NAME."
    )


class HistoryQuery(BaseModel):
    """Query of how a best came about."""

    model_config = ConfigDict(frozen=True)

    metric: str | None = Field(
        None, max_length=64, description="A metric of the task; the primary one if none."
    )
    limit: int = Field(1000, ge=1, le=1000, description="Most steps returned: the last ones.")


class MySubmissionsQuery(Page):
    """Which of an account's submissions are listed."""

    task: str | None = Field(None, max_length=64, description="Only those to this task.")


class SubmitQuery(BaseModel):
    """Query of a submission."""

    model_repo: str | None = Field(None, max_length=200, description="Hub model repository, NAMESPACE/NAME.")


class LinksBody(Body):
    """Links of a submission; what is left out stays as it is, null removes it."""

    model_config = example(
        {"model_repo": "alice/helix-fitter", "code_url": "https://code.example.org/helix"}, strict=True
    )

    model_repo: str | None = Field(None, max_length=200, description="Hub model repository, NAMESPACE/NAME.")
    code_url: str | None = Field(None, max_length=LONGEST_LINK, description="HTTPS address of the code.")
    paper_url: str | None = Field(None, max_length=LONGEST_LINK, description="HTTPS address of the paper.")
