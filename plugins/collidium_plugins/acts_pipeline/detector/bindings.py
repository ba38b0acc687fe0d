"""Modules of ACTS whose type stubs do not tell what they bind."""

from __future__ import annotations

from typing import Any, Final

import acts.examples.arrow
import acts.examples.json

ARROW: Final[Any] = acts.examples.arrow
JSON: Final[Any] = acts.examples.json
