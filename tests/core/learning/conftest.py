"""Tests of torch and of grain belong to the environment that has these: ``tox -e torch``."""

from importlib.util import find_spec

collect_ignore = [f"test_{name}.py" for name in ("grain", "torch") if find_spec(name) is None]
