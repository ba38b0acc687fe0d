"""How much tests do of what only counts: little, or all of it (``tox -e long``)."""

import os

#: Whether tests run at full counts, and those that are marked ``long`` at all.
LONG = os.environ.get("COLLIDIUM_TEST_LONG") == "1"
