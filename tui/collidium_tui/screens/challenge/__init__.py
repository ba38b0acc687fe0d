"""One challenge: its leaderboard, submissions, participants and teams, and operator actions on them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static, TabbedContent, TabPane

from collidium.presentation import challenges, places, submissions
from collidium.presentation.challenge_settings import heading_rows
from collidium_tui.screen import ConsoleScreen, ListData, ListsScreen, OpenedScreen
from collidium_tui.screens.challenge import actions
from collidium_tui.widgets.form import Field, Form
from collidium_tui.widgets.table import PAGE, Table
from collidium_tui.widgets.text import counted

if TYPE_CHECKING:
    from collidium.client import AsyncClient, Challenge, Page, TaskCard, WaitingFile


async def open_challenge(screen: ConsoleScreen[Any], name: str) -> None:
    """Open a challenge; raises NotFound if it is not listed."""
    challenge = await screen.session.call(lambda client: client.challenge(name))
    screen.app.push_screen(ChallengeScreen(challenge))


def waiting_text(files: Sequence[WaitingFile]) -> str:
    """Describe the files that a challenge waits for."""
    stopped = ", no longer tried" if files[0].retry_at is None else ""
    return f"{counted(len(files), 'files')}: {files[0].reason}{stopped}"


def about(card: TaskCard) -> list[str]:
    """Return what currently counts, for the line above the lists."""
    phase = {"public": f"public phase: {card.public_percent}% of the events count", "final": "final phase"}
    return [
        "accepts submissions" if card.accepts_submissions else f"accepts NO submissions: {card.reason}",
        *([phase.get(card.phase, card.phase)] if card.phase else []),
        f"scorer {card.scorer_version}",
        f"truth {card.truth_version or 'none'}",
    ]


class ChallengeScreen(OpenedScreen[ListData["Challenge"]], ListsScreen["Challenge"]):
    """A challenge with its lists."""

    label = "Benchmarks"
    about = (
        "One challenge: its leaderboard, all submissions (/ filters by account), its participants with their "
        "quota of today (Enter shows the submissions of one), its teams. d disqualifies or reinstates a "
        "submission, v verifies its self-reported scores. o scores all submissions again, h withholds "
        "events, each after a preview. m removes a participant from the members, or an account from the team "
        "under the cursor, a dissolves that team."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        # The shown ones fit into 80 columns.
        Binding("l", "next_list", "List"),
        Binding("slash", "pick", "Pick", key_display="/"),
        Binding("d", "standing", "Disqualify"),
        Binding("v", "verify", "Verify", show=False),
        Binding("h", "split", "Split: hold events back", show=False),
        Binding("o", "rescore", "Score all again", show=False),
        Binding("m", "remove_member", "Remove from the members, or from a team", show=False),
        Binding("a", "dissolve_team", "Take a team apart", show=False),
        Binding("x", "close_challenge", "Close"),
    ]

    def __init__(self, challenge: Challenge) -> None:
        super().__init__()
        self.challenge = challenge
        #: The account whose submissions are listed; None: all.
        self.user: str | None = None
        #: Files that a rescoring or the end waits for.
        self.waiting: list[WaitingFile] = []

    def content(self) -> ComposeResult:
        yield Static(id="challenge")
        yield from self.lists()

    def tables(self) -> Iterable[Table[Any]]:
        card, teams = self.challenge.card, self._has_teams
        sent = submissions.in_console({self.challenge.task: card} if card else {}, teams=teams)
        board: list[Any] = [*(places.in_console(card, teams=teams) if card else sent)]
        yield Table(board, lambda place: place.submission_id, of="places", id="places", fixed=2)
        yield Table(sent, lambda sent: sent.submission_id, of="submissions", id="sent", fixed=1)
        roster = challenges.roster_in_console(teams=teams)
        yield Table(roster, lambda entry: entry.hub_username, of="participants", id="roster", fixed=1)
        if teams:
            yield Table(challenges.TEAMS_IN_CONSOLE, lambda team: team.name, of="teams", id="teams", fixed=1)

    async def fetch_list(self, client: AsyncClient, table: Table[Any]) -> tuple[Challenge, Page[Any]]:
        name = self.challenge.name
        challenge = await client.challenge(name)
        self.waiting = [file for file in await client.admin_waiting_files(name) if file.left_out_at is None]
        match table.id:
            case "places":
                return challenge, await client.leaderboard(name, limit=PAGE, cursor=table.cursor)
            case "roster":
                return challenge, await client.admin_roster(name, limit=PAGE, cursor=table.cursor)
            case "teams":
                return challenge, await client.teams(name, limit=PAGE, cursor=table.cursor)
        user = self.user
        sent = await client.admin_challenge_submissions(name, user=user, limit=PAGE, cursor=table.cursor)
        return challenge, sent

    def show_head(self, head: Challenge) -> None:
        self.challenge = head
        dates = (("opens", head.opens_at), ("closes", head.closes_at), ("results", head.results_at))
        facts = [
            f"{head.name}: {head.title}",
            head.shown_state,
            *(f"{name} {self.times.show(at)}" for name, at in dates if at is not None),
            *(f"{label}: {text}" for label, text in heading_rows(head).items()),
            *(about(head.card) if head.card else []),
            *([f"waiting: {waiting_text(self.waiting)}"] if self.waiting else []),
            *([f"ONLY {self.user}"] if self.user else []),
        ]
        self.show_line("#challenge", " · ".join(facts))

    def on_table_chosen(self, event: Table.Chosen) -> None:
        if event.table.id == "roster":
            self._pick(event.row.hub_username)

    def action_pick(self) -> None:
        self.act(self._fill_in)

    def action_standing(self) -> None:
        if (submission_id := self._current) is not None:
            self.act(partial(actions.change_standing, self, self.challenge.name, submission_id))

    def action_verify(self) -> None:
        if (submission_id := self._current) is not None:
            self.act(partial(actions.verify, self, submission_id))

    def action_split(self) -> None:
        self.act(partial(actions.split, self, self.challenge.name))

    def action_rescore(self) -> None:
        self.act(partial(actions.rescore, self, self.challenge.name))

    def action_remove_member(self) -> None:
        entry = self.active_table.current
        if self.active_table.id == "roster" and entry is not None:
            self.act(partial(actions.remove_member, self, self.challenge, entry))
        elif self.active_table.id == "teams" and entry is not None:
            self.act(partial(actions.remove_from_team, self, entry))
        else:
            self.notify("Choose one on the list Participants or Teams (l) first.")

    def action_dissolve_team(self) -> None:
        team = self.active_table.current
        if self.active_table.id == "teams" and team is not None:
            self.act(partial(actions.dissolve_team, self, team))
        else:
            self.notify("Choose one on the list Teams (l) first.")

    def action_close_challenge(self) -> None:
        self.act(partial(actions.close_challenge, self, self.challenge.name))

    @property
    def _has_teams(self) -> bool:
        return self.challenge.team_size > 1

    @property
    def _current(self) -> str | None:
        """The submission under the cursor."""
        if self.active_table.id in {"roster", "teams"} or self.active_table.current is None:
            self.notify("Choose a submission on another list (l) first.")
            return None
        return str(self.active_table.current.submission_id)

    async def _fill_in(self) -> None:
        fields = [Field("user", "account; empty: all", value=self.user or "")]
        filled = await self.fill_in(Form("Submissions of", fields, "Show"))
        if filled is not None:
            self._pick(filled["user"] or None)

    def _pick(self, user: str | None) -> None:
        self.user = user
        table = self.query_one("#sent", Table)
        table.restart()
        if self.active_table is table:
            self.refresh_now()
        else:
            pane = next(parent.id for parent in table.ancestors if isinstance(parent, TabPane))
            self.query_one(TabbedContent).active = pane or ""
