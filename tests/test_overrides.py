"""What is private in other people's libraries is touched in ``collidium.overrides`` alone.

Found in the sources, with the foreign classes that ours derive from imported: uses of private names and
modules, private methods that are overridden, attributes of foreign modules and classes that are set, and
methods of instances that are replaced.
"""

from __future__ import annotations

import ast
import inspect
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module, metadata
from pathlib import Path
from pkgutil import iter_modules
from types import CodeType
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version
from tests.documents import ROOT

from collidium import overrides
from collidium.runtime import libraries

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
FOLDERS = ("core", "tasks", "runners", "plugins", "tui")
OVERRIDES = "collidium.overrides"
OWN = frozenset({"collidium", "collidium_tasks", "collidium_runners", "collidium_plugins", "collidium_tui"})

#: Private by their spelling alone: documented.
DOCUMENTED = frozenset({"_asdict", "_exit", "_fields", "_make", "_replace", "_value_"})
#: Attributes of modules that are documented to be set.
SETTABLE = frozenset({"logging.raiseExceptions", "sys.argv", "sys.stderr", "sys.stdout"})
#: Installed in environments of their own.
ABSENT = frozenset({"grain", "torch"})

_PRIVATE_MODULE = re.compile(r"[a-z]\w*(\.\w+)*\._[a-z]\w*")


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name.strip("_") != ""


def of_class(node: ast.AST, depth: int = 0) -> Iterator[ast.AST]:
    """The nodes of a class, without inner functions that have a ``self`` of their own."""
    yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            if depth == 0 or "self" not in {argument.arg for argument in child.args.args}:
                yield from of_class(child, depth + 1)
        else:
            yield from of_class(child, depth)


@dataclass
class Module:
    """A module's source, what its imports bind, and the classes and private names that it defines."""

    name: str
    tree: ast.Module
    bound: dict[str, str] = field(default_factory=dict)
    classes: dict[str, ast.ClassDef] = field(default_factory=dict)
    defined: set[str] = field(default_factory=set)
    nodes: list[ast.AST] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.nodes = list(ast.walk(self.tree))
        for node in self.nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    top = alias.name.partition(".")[0]
                    self.bound[alias.asname or top] = alias.name if alias.asname else top
            elif isinstance(node, ast.ImportFrom) and node.module:
                self.bound |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
            elif isinstance(node, ast.ClassDef):
                self.classes[node.name] = node
            self.defined |= defined_by(node)

    def resolved(self, node: ast.expr) -> str:
        """The dotted name of an expression: what its imports say, or the module's own."""
        if isinstance(node, ast.Subscript):
            return self.resolved(node.value)
        if isinstance(node, ast.Attribute):
            return f"{self.resolved(node.value)}.{node.attr}"
        if isinstance(node, ast.Name):
            return self.bound.get(node.id, f"{self.name}.{node.id}")
        return ""


def defined_by(node: ast.AST) -> set[str]:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return {node.name}
        case ast.Name(ctx=ast.Store()):
            return {node.id}
        case ast.Attribute(ctx=ast.Store(), value=ast.Name(id="self" | "cls")):
            return {node.attr}
    return set()


def product(source: Path = ROOT) -> dict[str, Module]:
    """The product's modules by name."""
    found = {}
    for folder in FOLDERS:
        for file in sorted((source / folder).rglob("*.py")):
            name = ".".join(file.relative_to(source / folder).with_suffix("").parts).removesuffix(".__init__")
            found[name] = Module(name, ast.parse(file.read_text()))
    return found


def is_foreign(dotted: str) -> bool:
    return dotted.partition(".")[0] not in OWN


@cache
def foreign_object(dotted: str) -> Any:
    """What a dotted name of a foreign module stands for, None if it stands for nothing."""
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found = import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for name in parts[length:]:
            found = getattr(found, name, None)
        return found
    assert parts[0] in ABSENT | {"builtins"} or not parts[0].isidentifier(), dotted
    return None


@cache
def privates_of(kind: type) -> frozenset[str]:
    """The private names that a foreign class and its bases define or use."""
    found: set[str] = set()
    for base in kind.__mro__[:-1]:
        for name, value in vars(base).items():
            function = getattr(value, "fget", None) or getattr(value, "__func__", value)
            found |= {name, *names_in(getattr(function, "__code__", None))}
    return frozenset(filter(is_private, found)) - {"_generate_next_value_"}


def names_in(code: CodeType | None) -> Iterator[str]:
    if code is not None:
        yield from code.co_names
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                yield from names_in(constant)


class Scan:
    """The places of the product that touch what is private elsewhere."""

    def __init__(self, modules: dict[str, Module]) -> None:
        self._modules = modules

    def places(self) -> list[str]:
        return sorted(
            {
                f"{module.name}:{node.lineno}: {ast.unparse(node).splitlines()[0]}"
                for module in self._modules.values()
                if not f"{module.name}.".startswith(f"{OVERRIDES}.")
                for node in [*self._accesses(module), *self._assignments(module), *self._of_classes(module)]
            }
        )

    def _accesses(self, module: Module) -> Iterator[ast.expr | ast.stmt]:
        for node in module.nodes:
            match node:
                case ast.Attribute(attr=name, value=ast.Name(id="self" | "cls")) if is_private(name):
                    pass  # by their classes, below
                case ast.Attribute(attr=name) if is_private(name) and name not in DOCUMENTED:
                    if name not in module.defined:
                        yield node
                case ast.Call(
                    func=ast.Name(id="getattr" | "setattr" | "hasattr" | "delattr"),
                    args=[_, ast.Constant(value=str(name)), *_],
                ) if is_private(name) and name not in module.defined:
                    yield node
                case ast.Constant(value=str(text)) if _PRIVATE_MODULE.fullmatch(text) and is_foreign(text):
                    yield node
                case ast.Import() | ast.ImportFrom():
                    names = [a.name for a in node.names]
                    if isinstance(node, ast.ImportFrom):
                        names = [f"{node.module}.{name}" for name in names]
                    for name in names:
                        if is_foreign(name) and any(map(is_private, name.split("."))):
                            yield node

    def _assignments(self, module: Module) -> Iterator[ast.expr | ast.stmt]:
        nodes = module.nodes
        functions = {n.name for n in nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)}
        functions -= {n.arg for n in nodes if isinstance(n, ast.arg)}
        functions -= {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        for node in nodes:
            if isinstance(node, ast.Assign):
                targets, value = node.targets, node.value
            elif isinstance(node, ast.AugAssign | ast.AnnAssign):
                targets, value = [node.target], node.value or node.target
            elif isinstance(node, ast.Call) and ast.unparse(node.func) in {"setattr", "delattr"}:
                targets, value = [ast.Attribute(node.args[0], "?", ast.Store())], node
            else:
                continue
            replaces = isinstance(value, ast.Lambda) or ast.unparse(value) in functions
            for target in targets:
                if not isinstance(target, ast.Attribute) or ast.unparse(target.value) in {"self", "cls"}:
                    continue
                if replaces or self._is_of_foreign_module(module, target):
                    yield node

    def _is_of_foreign_module(self, module: Module, target: ast.Attribute) -> bool:
        root: ast.expr = target
        while isinstance(root, ast.Attribute):
            root = root.value
        if not isinstance(root, ast.Name) or root.id not in module.bound:
            return False
        owner = module.resolved(target.value)
        if not is_foreign(owner) or f"{owner}.{target.attr}" in SETTABLE:
            return False
        found = foreign_object(owner)
        return inspect.ismodule(found) or inspect.isclass(found)

    def _of_classes(self, module: Module) -> Iterator[ast.expr | ast.stmt]:
        for kind in module.classes.values():
            own = self._own_privates(module, kind)
            foreign = self._foreign_privates(module, kind)
            for node in of_class(kind):
                match node:
                    case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if name in foreign:
                        yield node
                    case ast.Attribute(attr=name, value=ast.Name(id="self" | "cls")) if is_private(name):
                        if name in foreign or not (name in own or name in DOCUMENTED):
                            yield node

    def _own_privates(self, module: Module, kind: ast.ClassDef) -> set[str]:
        found = set().union(*(defined_by(node) for node in ast.walk(kind)))
        # What a class inside of another class or function refers to may be of the outer one.
        return found.union(*(self._own_privates(*base) for base in self._own_bases(module, kind)))

    def _foreign_privates(self, module: Module, kind: ast.ClassDef) -> set[str]:
        found: set[str] = set()
        for expression in kind.bases:
            dotted = module.resolved(expression)
            if dotted and is_foreign(dotted) and inspect.isclass(base := foreign_object(dotted)):
                found |= privates_of(base)
        return found.union(*(self._foreign_privates(*base) for base in self._own_bases(module, kind)))

    def _own_bases(self, module: Module, kind: ast.ClassDef) -> Iterator[tuple[Module, ast.ClassDef]]:
        for expression in kind.bases:
            where, _, name = module.resolved(expression).rpartition(".")
            if where in self._modules and name in self._modules[where].classes:
                yield self._modules[where], self._modules[where].classes[name]
            elif where in self._modules and name in self._modules[where].bound:
                where, _, name = self._modules[where].bound[name].rpartition(".")
                if where in self._modules and name in self._modules[where].classes:
                    yield self._modules[where], self._modules[where].classes[name]


def test_private_names_are_touched_in_overrides_alone() -> None:
    assert Scan(product()).places() == []


@pytest.mark.parametrize(
    ("source", "place"),
    [
        ("import httpx\nhttpx.Client()._transport", "httpx.Client()._transport"),
        ("getattr(object, '_pool', None)", "getattr(object, '_pool', None)"),
        ("from textual.widgets._data_table import RowKey", "from textual.widgets._data_table import RowKey"),
        ("import sys\nsys.modules['httpx._main'] = None", "'httpx._main'"),
        ("import json\njson.dumps = None", "json.dumps = None"),
        ("from quart import Quart\nQuart.url_rule_class = None", "Quart.url_rule_class = None"),
        ("import json\nsetattr(json, 'dumps', None)", "setattr(json, 'dumps', None)"),
        ("def new(): ...\ndef f(app):\n    app.make_response = new", "app.make_response = new"),
        (
            "from quart import Quart\nclass A(Quart):\n    def f(self): self._static_folder",
            "self._static_folder",
        ),
        (
            "from textual.app import App\nclass A(App):\n    def _handle_exception(self, e): ...",
            "def _handle_exception(self, e):",
        ),
        (
            "from collidium.overrides.new import App\nclass A(App):\n    def f(self): self._exit_code",
            "self._exit_code",
        ),
    ],
)
def test_each_kind_of_private_use_is_found(tmp_path: Path, source: str, place: str) -> None:
    own = "import sys\nclass A:\n    def __init__(self): self._x = 1\n    def f(self, a): a._x, self._x\n"
    files = {
        "collidium/own.py": own + "sys.argv = []",
        "collidium/found.py": source,
        "collidium/overrides/new.py": "from textual.app import App as Theirs\nclass App(Theirs): ...",
    }
    for name, text in files.items():
        path = tmp_path / "core" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (found,) = Scan(product(tmp_path)).places()
    assert found.startswith("collidium.found:")
    assert found.endswith(f": {place}")


# -- versions ------------------------------------------------------------------------------------------


def requirements() -> dict[str, SpecifierSet]:
    """The ranges of all dependencies, extras included, by canonical name."""
    extras = PROJECT["project"]["optional-dependencies"].values()
    lines = [*PROJECT["project"]["dependencies"], *(line for extra in extras for line in extra)]
    return {canonicalize_name(one.name): one.specifier for one in map(Requirement, lines)}


@pytest.mark.parametrize(("library", "versions"), libraries.tested().items())
def test_a_library_with_an_override_is_bounded(library: str, versions: tuple[str, ...]) -> None:
    """By the oldest version that was tested, and the minor version after the newest."""
    if library == "httpcore2":  # which httpx2 pins
        return
    newest = Version(versions[-1])
    allowed = requirements()[canonicalize_name(library)]
    assert {str(one) for one in allowed} >= {f"<{newest.major}.{newest.minor + 1}"}
    assert all(version in allowed for version in versions)


@pytest.mark.parametrize("name", [module.name for module in iter_modules(overrides.__path__)])
def test_an_override_says_why_and_when_it_can_go(name: str) -> None:
    """With the issue upstream, or that none is known."""
    documentation = " ".join((import_module(f"{OVERRIDES}.{name}").__doc__ or "").split())
    assert "can go w" in documentation
    assert "https://github.com/" in documentation or "o issue is known" in documentation


def test_an_untested_version_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libraries, "tested", lambda: {"quart": ("0.1",), "no-such-library": ("1.0",)})
    (found,) = libraries.untested()
    assert found == f"quart {metadata.version('quart')} (tested: 0.1)"
