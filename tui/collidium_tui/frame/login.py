"""The login box: the operators' secret, typed in, checked with the server, kept in memory alone."""

from __future__ import annotations

from functools import partial

from textual.widgets import Input

from collidium.errors import CollidiumError
from collidium_tui.session import console_of
from collidium_tui.widgets.form import Field, Form, needed


class Login(Form):
    """Asks until the server accepts the secret; escape leaves the console."""

    def __init__(self, reason: str = "") -> None:
        field = Field("token", "Admin token", needed, secret=True, max_length=500)
        about = (
            "The secret that the server knows as ADMIN_TOKEN; where none is set, `collidium serve` keeps one "
            "in the file admin-token of its data directory. Here it is kept in memory alone."
        )
        super().__init__(
            "Sign in as operator", [field], "Sign in", f"{reason}\n\n{about}" if reason else about
        )

    def action_give_up(self) -> None:
        self.app.exit()

    def _send(self) -> None:
        values = self.values
        problems = self.problems(values)
        if problems:
            self.show_problems(problems)
        else:
            self.show_problems(["Asking the server…"])
            console_of(self).act(partial(self._try, values["token"]))

    async def _try(self, token: str) -> None:
        try:
            await console_of(self).session.sign_in(token)
        except CollidiumError as error:
            # The field is masked: a second attempt would be appended to the first.
            self.query_one(Input).select_all()
            self.show_problems([error.detail])
        else:
            self.dismiss(None)
