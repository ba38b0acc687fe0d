"""Models of tests: those that the tasks bring as examples, and their events."""

from __future__ import annotations

import pytest

pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: not run")
