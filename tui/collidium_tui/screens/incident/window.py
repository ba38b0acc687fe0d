"""The window of time whose failures are refunded, as an operator types it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from collidium_tui.screens.incident.procedure import Incident
from collidium_tui.widgets.form import Field, Form
from collidium_tui.widgets.times import Times

#: The failures that led to the freeze came before it.
BEFORE: Final = timedelta(hours=1)
#: The server takes no longer one.
LONGEST: Final = timedelta(days=31)


@dataclass(frozen=True, slots=True)
class Window:
    """From ``begin`` until before ``end``."""

    begin: datetime
    end: datetime

    @classmethod
    def proposed(cls, incident: Incident, now: datetime) -> Window:
        """From before the freeze, if there was one, until now."""
        began = incident.began.at if incident.began else now
        return cls(max(began - BEFORE, now - LONGEST), now)


class WindowForm(Form):
    """Asks for a window."""

    def __init__(self, window: Window, times: Times) -> None:
        def problem(typed: str) -> str | None:
            try:
                times.read(typed)
            except ValueError as error:
                return str(error)
            return None

        fields = [
            Field("begin", f"Failed from ({times.zone})", problem, times.show(window.begin)),
            Field("end", f"until ({times.zone})", problem, times.show(window.end)),
        ]
        about = "Shows the simulation requests that failed in this time and were not refunded in full."
        super().__init__("Refund what failed", fields, "Preview", about)
        self._times = times

    def problems(self, values: Mapping[str, str]) -> list[str]:
        found = super().problems(values)
        if found:
            return found
        window = self.window(values)
        if window.end <= window.begin:
            return ["The window ends before it begins."]
        if window.end - window.begin > LONGEST:
            return [f"The window is longer than {LONGEST.days} days: refund in two steps."]
        return []

    def window(self, values: Mapping[str, str]) -> Window:
        """What was typed in."""
        return Window(self._times.read(values["begin"]), self._times.read(values["end"]))
