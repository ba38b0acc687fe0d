"""The second line: the screens and their keys, also to be clicked."""

from __future__ import annotations

from textual import events
from textual.content import Content
from textual.style import Style
from textual.widgets import Static

from collidium_tui.services import services


class Tabs(Static):
    """All labels where the terminal is wide enough for them; the one that is shown in brackets."""

    def on_mount(self) -> None:
        services(self).screens_changed.subscribe(self, lambda _: self._draw())
        self._draw()

    def on_resize(self, event: events.Resize) -> None:
        self._draw()

    def on_screen_resume(self) -> None:
        self._draw()

    def _draw(self) -> None:
        console = services(self)
        shown = getattr(self.screen, "label", "")
        keys = console.screen_keys
        # With screens of plugins there may be no room for whole labels but that of the one that is shown.
        for spare, letters in ((" ", None), ("", None), ("", 5)):
            tabs = [_tab(key, label, spare, letters, label == shown) for key, label in keys.items()]
            line = Content(" ").join(tabs)
            if line.cell_length <= self.size.width:
                break
        self.update(line)


def _tab(key: str, label: str, spare: str, letters: int | None, shown: bool) -> Content:
    style = Style(reverse=True, bold=True) if shown else Style()
    click = Style.from_meta({"@click": f"app.show({label!r})"})
    return Content.assemble(
        (key, Style(bold=True)), spare, (label if shown else label[:letters], style)
    ).stylize(click)
