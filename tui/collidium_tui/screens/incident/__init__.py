"""Incident: a checklist from the freeze to the refunds."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import OptionList, Static

from collidium_tui.screen import ConsoleScreen
from collidium_tui.screens.accounts import ban
from collidium_tui.screens.incident.procedure import (
    GUIDES,
    KNOWN_TO_SERVER,
    Incident,
    Mark,
    Step,
    heading,
    join_logs,
    outcome,
)
from collidium_tui.screens.incident.refunds import Window, open_refunds
from collidium_tui.widgets.form import Field, Form, needed
from collidium_tui.widgets.text import plain

if TYPE_CHECKING:
    from collidium.client import AsyncClient, AuditEntry


#: Audit entries fetched in an update, and for a complete log. An incident may have a thousand refunds.
NEWEST, LONGEST = 100, 1000


class IncidentScreen(ConsoleScreen[Incident]):
    """The steps freeze, investigate, ban, fix, unfreeze, refund. Enter does a step, d marks it as done."""

    label = "Incident"
    about = "What to do in an incident, step by step. Enter does the step, d marks it done (or not needed)."
    AUTO_FOCUS = "#steps"
    CSS = """
    #heading { height: 1; text-style: bold; margin-bottom: 1; }
    #steps { height: auto; border: none; padding: 0; }
    #guide { margin-top: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("d", "mark", "Done"),
        Binding("q", "go('Requests')", "Requests"),
        Binding("a", "go('Accounts')", "Accounts"),
        Binding("w", "go('Audit')", "Audit"),
    ]

    def __init__(self) -> None:
        super().__init__()
        #: The operator's marks of each incident, by the id of its freeze.
        self._marks: dict[str, dict[Step, Mark]] = {}
        #: The known part of the audit log, newest first.
        self._log: tuple[AuditEntry, ...] = ()
        #: The next step when the screen was last updated.
        self._following: Step | None = Step.FREEZE

    def content(self) -> ComposeResult:
        yield Static(id="heading")
        yield OptionList(*(step.value for step in Step), id="steps")
        with VerticalScroll(can_focus=False):
            yield Static(id="guide")

    async def fetch(self, client: AsyncClient) -> Incident:
        newest = (await client.admin_audit(limit=NEWEST if self._log else LONGEST)).items
        joined = join_logs(newest, self._log)
        if joined is None:
            joined = (await client.admin_audit(limit=LONGEST)).items
        self._log = joined[: 2 * LONGEST]
        return Incident.from_log(self._log, bool(self.session.status.frozen), self.times.now())

    def show(self, data: Incident) -> None:
        self.show_line("#heading", heading(data, self.times))
        steps = self.query_one(OptionList)
        following = data.next_step(self.marks)
        for number, step in enumerate(Step):
            steps.replace_option_prompt_at_index(number, self._line(data, step, step is following))
        # The highlight follows the next step, unless the operator has moved it.
        if following is not None and self.step is self._following:
            steps.highlighted = list(Step).index(following)
        self._following = following
        self._guide()

    # -- marks of the operator --------------------------------------------------------------------------

    @property
    def incident(self) -> Incident:
        """The incident as last fetched."""
        return self.data or Incident()

    @property
    def marks(self) -> dict[Step, Mark]:
        """The operator's marks of this incident."""
        began = self.incident.began
        return self._marks.setdefault(str(began.id) if began else "", {})

    @property
    def step(self) -> Step:
        """The highlighted step."""
        return list(Step)[self.query_one(OptionList).highlighted or 0]

    def action_mark(self) -> None:
        """Mark a step as done, or remove the mark."""
        if self.step in KNOWN_TO_SERVER:
            self.notify("The server records this step: press Enter to do it.")
        elif self.step in self.marks:
            del self.marks[self.step]
            self.show(self.incident)
        else:
            self.act(partial(self._mark, self.step))

    async def _mark(self, step: Step) -> None:
        field = Field("note", "Note", hint="the result, or why it is not needed; may be empty")
        about = "Stored only in this console until it ends; not visible to other operators."
        filled = await self.fill_in(Form(f"{step.value}: done", [field], "Mark as done", about))
        if filled is not None:
            self.marks[step] = Mark(self.times.now(), filled["note"])
            self.show(self.incident)

    # -- doing a step ---------------------------------------------------------------------------------

    def on_option_list_option_highlighted(self) -> None:
        self._guide()

    def on_option_list_option_selected(self) -> None:
        match self.step:
            case Step.FREEZE | Step.UNFREEZE:
                self._turn(freeze=self.step is Step.FREEZE)
            case Step.INVESTIGATE:
                self.action_go("Requests")
            case Step.BAN:
                self.act(self._ban)
            case Step.FIX:
                self.action_mark()
            case Step.REFUND:
                self.act(partial(open_refunds, self, Window.proposed(self.incident, self.times.now())))

    def action_go(self, label: str) -> None:
        """Show another screen."""
        self.console.action_show(label)

    def _turn(self, *, freeze: bool) -> None:
        if bool(self.session.status.frozen) is freeze:
            self.notify("It is frozen already." if freeze else "It is not frozen.")
        else:
            self.console.action_freeze()

    async def _ban(self) -> None:
        field = Field("name", "Account", needed, max_length=96)
        filled = await self.fill_in(Form("Ban an account", [field], "Continue"))
        if filled is not None:
            await ban(self, filled["name"])

    # -- inside ---------------------------------------------------------------------------------------

    def _line(self, incident: Incident, step: Step, following: bool) -> Content:
        box = "[x]" if incident.done(step, self.marks) else "[ ]"
        number = list(Step).index(step) + 1
        done = outcome(step, incident, self.marks.get(step), self.times)
        return plain(
            f"{box} {number} {step.value:<18} {done}{'<- next' if following else ''}", single_line=True
        )

    def _guide(self) -> None:
        back = next((key for key, label in self.console.screen_keys.items() if label == self.label), "")
        self.query_one("#guide", Static).update(plain(GUIDES[self.step].format(back=back)))
