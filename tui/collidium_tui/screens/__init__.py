"""The screens; each is imported when it is first shown."""

from typing import Final

#: The label of each -> module:class, in the order of their keys.
SCREENS: Final = {
    "Audit": "collidium_tui.screens.audit:AuditScreen",
}
