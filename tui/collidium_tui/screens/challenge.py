"""One challenge: its leaderboard, all submissions, who takes part; and what operators decide about them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static, TabbedContent, TabPane

from collidium.client.quantities import written
from collidium_tui.screen import ConsoleScreen
from collidium_tui.screens.lists import ListData, ListsScreen
from collidium_tui.screens.overview import OpenedScreen
from collidium_tui.widgets.form import LONGEST_NOTE, Field, Form, Question, needed
from collidium_tui.widgets.table import PAGE, Column, Table
from collidium_tui.widgets.text import plain

if TYPE_CHECKING:
    from collidium.client import (
        AsyncClient,
        Challenge,
        Metric,
        Page,
        Place,
        Ranking,
        RosterEntry,
        Submission,
        TaskCard,
        Team,
    )

#: Cells of a name in lists; the mark of a baseline is among them.
LONGEST_NAME: Final = 24
#: The whole reason stands on the submission's page, and where it is reinstated.
LONGEST_REASON: Final = 40


async def verify(screen: ConsoleScreen[Any], submission_id: str) -> None:
    """Verify the self-reported scores of a submission, after showing them and what they earn."""
    sent = await screen.session.call(lambda client: client.submission(submission_id))
    card = await screen.session.call(lambda client: client.task(sent.task))
    reported = self_reported_scores(sent, card)
    if sent.verified_at is not None or not reported:
        why = "it is verified already" if reported else f"{sent.task} has no self-reported metric"
        screen.notify(f"{submission_id}: {why}", title="Nothing to verify", markup=False)
        return
    consequence = (
        f"To {sent.task}, sent {screen.times.show(sent.submitted_at)}. It reports:\n"
        + "\n".join(f"  {line}" for line in reported)
        + "\nIt counts as verified from now on, on the leaderboard and for credits. This cannot be undone."
    )
    question = Question(f"Verify {submission_id} of {sent.hub_username}", consequence, "Verify")
    if await screen.confirm(question):
        verified = await screen.perform(
            lambda client, key: client.admin_verify(submission_id, idempotency_key=key)
        )
        if verified is not None:
            earned = verified.credits_earned - sent.credits_earned
            screen.notify(f"Verified: {sent.hub_username} earned {earned:,} credits", markup=False)


def self_reported_scores(sent: Submission, card: TaskCard) -> list[str]:
    """The self-reported scores of a submission, and what each may earn."""
    lines = []
    for metric in card.metrics:
        if metric.self_reported:
            pays = f"pays {metric.reward:,} credits if it is the best" if metric.reward else "pays nothing"
            lines.append(f"{metric.name}: {score(sent, metric.name)}; {pays}")
    return lines


async def close_challenge(screen: ConsoleScreen[Any], name: str) -> None:
    """Close a challenge, or open one that is closed, when its consequence was confirmed."""
    challenge = await screen.session.call(lambda client: client.challenge(name))
    if challenge.state in {"closed", "practice"}:
        about = (
            "Submissions are taken and ranked again, until it is closed (x) or a date that is set by "
            f"collidium challenge edit {name} --closes. Refused once final results on withheld events came."
        )
        if await screen.confirm(Question(f"Open {name} again", about, "Open")):
            await screen.perform(
                lambda client, key: client.admin_open_challenge(name, idempotency_key=key),
                f"{name} is open again",
            )
        return
    consequence = (
        "No more submissions are taken. Where events are withheld, they count from now on: the leaderboard "
        "ranks by them, credits are paid for the best scores on them, and it cannot be opened again."
    )
    if await screen.confirm(Question(f"Close {name}", consequence, "Close")):
        closed = await screen.perform(
            lambda client, key: client.admin_close_challenge(name, idempotency_key=key)
        )
        if closed is not None:
            results = "final results are shown" if closed.results_at else "final results come within minutes"
            screen.notify(f"{name} is closed, {results}", markup=False)


async def remove_member(screen: ConsoleScreen[Any], challenge: Challenge, entry: RosterEntry) -> None:
    """Take an account from the list of members, when its consequence was confirmed."""
    name, user = challenge.name, entry.hub_username
    if not entry.member:
        why = "it is not on the list of members"
        screen.notify(f"{user}: {why}", title="Nothing to remove", markup=False)
        return
    stays = f"Its {entry.submissions} submissions stay" if entry.submissions else "It has not submitted"
    team = f", and it stays in the team {entry.team}" if entry.team else ""
    about = (
        "" if challenge.access == "members" else f"{name} is open to everybody now, not to members alone.\n"
    ) + f"{user} may not submit any more as a member. {stays}{team}. All invitations to {name} end."
    if await screen.confirm(Question(f"Remove {user} from the members of {name}", about, "Remove")):
        await screen.perform(
            lambda client, key: client.admin_remove_member(name, user, idempotency_key=key),
            f"Removed: {user}",
        )


async def change_standing(screen: ConsoleScreen[Any], challenge: str, submission_id: str) -> None:
    """Disqualify a submission, or reinstate one that is, after showing what changes."""
    sent = await screen.session.call(lambda client: client.submission(submission_id))
    ranking = await screen.session.call(
        lambda client: client.admin_preview_standing(challenge, submission_id)
    )
    who = f"{submission_id} of {sent.hub_username}"
    if (sent.unranked or "").startswith("disqualified"):
        about = f"{sent.unranked}\nIt counts again:\n{rank_changes(ranking)}"
        if await screen.confirm(Question(f"Reinstate {who}", about, "Reinstate")):
            await screen.perform(
                lambda client, key: client.admin_reinstate(challenge, submission_id, idempotency_key=key),
                f"Reinstated: {sent.hub_username}",
            )
        return
    fields = [
        Field("reason", "reason, which everybody sees", needed, max_length=LONGEST_NOTE),
        Field("take_back", f"take back the {sent.credits_earned:,} credits that it earned", yes_or_no, "no"),
    ]
    filled = await screen.fill_in(Form(f"Disqualify {who}", fields, "Disqualify", rank_changes(ranking)))
    if filled is not None:
        await screen.perform(
            lambda client, key: client.admin_disqualify(
                *(challenge, submission_id, filled["reason"]),
                take_back=filled["take_back"] == "yes",
                idempotency_key=key,
            ),
            f"Disqualified: {sent.hub_username}",
        )


def yes_or_no(typed: str) -> str | None:
    """The check of a field that is answered so."""
    return None if typed in {"yes", "no"} else "is yes or no"


def rank_changes(ranking: Ranking) -> str:
    """How ranks change, a line each."""
    lines = [
        f"  {change.rank_before or 'no rank'} -> {change.rank or 'no rank'}  {change.hub_username}"
        + (f", earns {change.earns:,} credits" if change.earns else "")
        for change in ranking.changes
    ]
    return "\n".join(lines) or "  no rank changes"


async def split(screen: ConsoleScreen[Any], name: str) -> None:
    """Hold back a part of a challenge's events, where nothing was submitted yet."""
    about = (
        "The public part counts until the challenge closes, the others then. Where there are submissions, "
        f"these are scored again on the server's machine: collidium benchmark split {name} --public PERCENT"
    )
    fields = [Field("percent", "public, per cent", _percent)]
    filled = await screen.fill_in(Form(f"Split the events of {name}", fields, "Split", about))
    if filled is not None:
        await screen.perform(
            lambda client, key: client.admin_edit_challenge(
                name, public_percent=int(filled["percent"]), idempotency_key=key
            ),
            f"{name} is split",
        )


def _percent(typed: str) -> str | None:
    is_number = typed.isascii() and typed.isdecimal() and len(typed) < 3
    return None if is_number and int(typed) else "is a number from 1 to 99"


async def open_challenge(screen: ConsoleScreen[Any], name: str) -> None:
    """Show a challenge on top; raises NotFound for one that is not listed."""
    challenge = await screen.session.call(lambda client: client.challenge(name))
    screen.app.push_screen(ChallengeScreen(challenge))


class ChallengeScreen(OpenedScreen[ListData["Challenge"]], ListsScreen["Challenge"]):
    """Ranks with standard errors; every submission, with why one has no rank; the accounts."""

    label = "Benchmarks"
    about = (
        "One challenge: its leaderboard, all submissions (/ picks an account), its participants with what is "
        "left of the day (Enter shows the submissions of one), its teams. d disqualifies or reinstates a "
        "submission after showing what changes, v verifies what it reports of itself, m removes a "
        "participant from the members."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        # Seven and those of the frame fit into 80 columns.
        Binding("l", "next_list", "List"),
        Binding("slash", "pick", "Pick", key_display="/"),
        Binding("d", "standing", "Disqualify"),
        Binding("v", "verify", "Verify", show=False),
        Binding("h", "split", "Split: hold events back", show=False),
        Binding("o", "rescore", "Rescore", show=False),
        Binding("m", "remove_member", "Remove from the members", show=False),
        Binding("x", "close_challenge", "Close"),
    ]

    def __init__(self, challenge: Challenge) -> None:
        super().__init__()
        self.challenge = challenge
        #: Whose submissions are listed; None: all.
        self.user: str | None = None

    def content(self) -> ComposeResult:
        yield Static(id="challenge")
        yield from self.lists()

    def tables(self) -> Iterable[Table[Any]]:
        card, team = self.challenge.card, [_TEAM] * self._has_teams
        places = columns(card) if card else _SENT
        places = [*places[:2], *team, *places[2:]]
        yield Table(places, lambda place: place.submission_id, of="places", id="places", fixed=2)
        sent = [*_SENT[:2], *team, *_SENT[2:]]
        yield Table(sent, lambda sent: sent.submission_id, of="submissions", id="sent", fixed=1)
        roster = [*_ROSTER[:1], *team, *_ROSTER[1:]]
        yield Table(roster, lambda entry: entry.hub_username, of="participants", id="roster", fixed=1)
        if self._has_teams:
            yield Table(_TEAMS, lambda team: team.name, of="teams", id="teams", fixed=1)

    async def fetch_list(self, client: AsyncClient, table: Table[Any]) -> tuple[Challenge, Page[Any]]:
        name = self.challenge.name
        challenge = await client.challenge(name)
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
            head.state,
            *(f"{name} {self.times.show(at)}" for name, at in dates if at is not None),
            *(_about(head.card) if head.card else []),
            *([f"ONLY {self.user}"] if self.user else []),
        ]
        self.query_one("#challenge", Static).update(plain(" · ".join(facts), single_line=True))

    def on_table_chosen(self, event: Table.Chosen) -> None:
        if event.table.id == "roster":
            self._pick(event.row.hub_username)

    def action_pick(self) -> None:
        self.act(self._fill_in)

    def action_standing(self) -> None:
        if (submission_id := self._current) is not None:
            self.act(partial(change_standing, self, self.challenge.name, submission_id))

    def action_verify(self) -> None:
        if (submission_id := self._current) is not None:
            self.act(partial(verify, self, submission_id))

    def action_split(self) -> None:
        self.act(partial(split, self, self.challenge.name))

    def action_rescore(self) -> None:
        command = f"collidium benchmark rescore {self.challenge.name} --preview"
        message = f"{command}\nthen the same with --apply"
        self.notify(message, title="On the server's machine", timeout=20, markup=False)

    def action_remove_member(self) -> None:
        entry = self.active_table.current
        if self.active_table.id == "roster" and entry is not None:
            self.act(partial(remove_member, self, self.challenge, entry))
        else:
            self.notify("Choose one on the list Participants (l) first.")

    def action_close_challenge(self) -> None:
        self.act(partial(close_challenge, self, self.challenge.name))

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


def columns(card: TaskCard) -> list[Column[Place]]:
    """Rank and account, a column for each metric, and whether what was self-reported is verified."""
    found: list[Column[Place]] = [
        Column("rank", lambda place: place.rank, right=True),
        Column(
            "account",
            lambda place: f"{place.hub_username}{' (baseline)' * place.baseline}",
            longest=LONGEST_NAME,
        ),
        *(_score(metric) for metric in card.metrics),
    ]
    if card.pareto is not None:
        found.append(Column("Pareto front", lambda place: "on it" if place.pareto else ""))
    if any(metric.self_reported for metric in card.metrics):
        found.append(Column("verified", lambda place: place.verified_at, _verified))
    return [
        *found,
        Column("earned", lambda place: place.credits_earned, right=True),
        Column("when", lambda place: place.submitted_at),
        Column("model", model),
        Column("submission", lambda place: place.submission_id),
    ]


def _score(metric: Metric) -> Column[Place]:
    title = f"{metric.name} (self-reported)" if metric.self_reported else metric.name
    return Column(
        title,
        lambda place: place.scores.get(metric.name),
        lambda place: Text(score(place, metric.name), justify="right", no_wrap=True),
        right=True,
    )


def score(place: Place | Submission, metric: str) -> str:
    """A score with its standard error, as the pages write it."""
    value = place.scores.get(metric)
    return "none" if value is None else written(value, place.uncertainties.get(metric))


def model(linked: Place | Submission) -> str:
    """The model of a submission, and whether the account's claim to it is verified."""
    return f"{linked.model_repo} ({linked.model_claim})" if linked.model_repo else ""


def scores(sent: Submission) -> str:
    """All scores of a submission, with their standard errors."""
    return ", ".join(f"{name} {score(sent, name)}" for name in sent.scores)


def role(entry: RosterEntry) -> str:
    """What else an account is in a challenge."""
    roles = {"baseline": entry.baseline, "captain": entry.captain, "member": entry.member}
    return next((name for name, has_it in roles.items() if has_it), "")


def _verified(place: Place) -> Text:
    return Text("yes" if place.verified_at is not None else "NOT YET")


def _about(card: TaskCard) -> list[str]:
    phase = {"public": f"public phase: {card.public_percent}% of the events count", "final": "final phase"}
    return [
        "accepts submissions" if card.accepts_submissions else "accepts NO submissions",
        *([phase.get(card.phase, card.phase)] if card.phase else []),
        f"scorer {card.scorer_version}",
        f"truth {card.truth_version or 'none'}",
    ]


_TEAM: Column[Any] = Column("team", lambda row: row.team or "", longest=LONGEST_NAME)
_SENT: list[Column[Submission]] = [
    Column("account", lambda sent: sent.hub_username, longest=LONGEST_NAME),
    Column("no rank because", lambda sent: sent.unranked or "", longest=LONGEST_REASON),
    Column("when", lambda sent: sent.submitted_at),
    Column("scores", scores),
    Column("earned", lambda sent: sent.credits_earned, right=True),
    Column("chosen", lambda sent: sent.chosen_at),
    Column("verified", lambda sent: sent.verified_at),
    Column("model", model),
    Column("submission", lambda sent: sent.submission_id),
]
_ROSTER: list[Column[RosterEntry]] = [
    Column("account", lambda entry: entry.hub_username, longest=LONGEST_NAME),
    Column("sent", lambda entry: entry.submissions, right=True),
    Column("left today", lambda entry: entry.submissions_left, right=True),
    Column("", role),
    Column("last", lambda entry: entry.last_submitted_at),
    Column("first", lambda entry: entry.joined_at),
]
_TEAMS: list[Column[Team]] = [
    Column("team", lambda team: team.name, longest=LONGEST_NAME),
    Column("captain", lambda team: team.captain or "", longest=LONGEST_NAME),
    Column("members", lambda team: ", ".join(team.members)),
    Column("since", lambda team: team.created_at),
]
