"""The error classes: one status and one exit code each, as the module's docstring draws them."""

import inspect
import re

import pytest

from collidium import errors
from collidium.errors import CollidiumError, RefusedError

DRAWN = re.compile(r"^ *((?:│   |    )*)(?:[├└]── )?(\w+) +(\d{3}|---)(?: +exit (\d))?", re.MULTILINE)


def all_errors() -> dict[str, type[CollidiumError]]:
    classes = inspect.getmembers(errors, inspect.isclass)
    return {name: kind for name, kind in classes if issubclass(kind, CollidiumError)}


def drawn() -> dict[str, tuple[int, str, str | None]]:
    """Depth, status and exit code by name, as the module's docstring draws them."""
    rows = {}
    for line in inspect.getdoc(errors).splitlines():
        if found := DRAWN.match(line):
            _, name, status, exit_code = found.groups()
            rows[name] = (line.index(name) // 4 - 1, status, exit_code)
    return rows


def test_the_tree_drawn_is_the_tree_there_is() -> None:
    assert set(drawn()) == set(all_errors()) - {RefusedError.__name__}


@pytest.mark.parametrize("name", drawn())
def test_status_and_exit_code_are_as_drawn(name: str) -> None:
    _, status, exit_code = drawn()[name]
    kind = all_errors()[name]
    if status != "---":
        assert kind.status == int(status)
    if exit_code is not None:
        assert kind.exit_code == int(exit_code)


def test_errors_inherit_as_drawn() -> None:
    ancestors: list[str] = []
    for name, (depth, _, _) in drawn().items():
        ancestors[depth:] = [name]
        assert all(issubclass(all_errors()[name], all_errors()[above]) for above in ancestors)


@pytest.mark.parametrize("kind", all_errors().values(), ids=all_errors())
def test_every_error_has_a_title(kind: type[CollidiumError]) -> None:
    assert inspect.getdoc(kind)
    assert kind.title
    assert kind.exit_code in {1, 3, 4}
    assert 400 <= kind.status < 600


def test_an_error_carries_all_its_problems() -> None:
    error = errors.InvalidInput("2 problems", errors=[{"detail": "a", "column": "hit_id"}, {"detail": "b"}])
    assert error.detail == "2 problems"
    assert str(error) == "2 problems: hit_id: a (and 1 more in .errors)"
    assert [problem["detail"] for problem in error.errors] == ["a", "b"]


def test_the_headers_that_http_asks_for_come_with_the_error() -> None:
    assert errors.Unauthenticated("who?").headers == {"WWW-Authenticate": "Bearer"}
    assert errors.TooManyRequests("slowly", retry_after=7).headers == {"Retry-After": "7"}
    assert errors.Unavailable("frozen", retry_after=60).headers == {"Retry-After": "60"}
