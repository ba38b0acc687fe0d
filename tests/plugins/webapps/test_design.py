"""Style sheets and templates: contrast, known names, and the content security policy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import pytest

ROOM = Path(str(files("collidium_plugins.webapps")))
TEMPLATES = sorted((ROOM / "templates" / "webapps").rglob("*.html"))
STYLES = sorted((ROOM / "static" / "css").glob("*.css"))
SITE = (ROOM / "static" / "css" / "site.css").read_text(encoding="utf-8")
#: What text has at the least, by WCAG 2.2 AA (1.4.3), and edges and lines of plots (1.4.11).
TEXT, SHAPES = 4.5, 3.0
GROUNDS = ("paper", "surface", "sunken")
SOFT = ("accent-soft", "good-soft", "warn-soft", "bad-soft")
READ = [
    *(("ink", ground, TEXT) for ground in (*GROUNDS, *SOFT)),
    *((text, ground, TEXT) for text in ("muted", "accent", "bad") for ground in GROUNDS),
    *((kind, f"{kind}-soft", TEXT) for kind in ("accent", "good", "warn", "bad")),
    ("on-accent", "accent", TEXT),
    ("screen-ink", "screen", TEXT),
    *(("line-strong", ground, SHAPES) for ground in ("paper", "surface")),
    *((line, ground, SHAPES) for line in ("series", "series-other") for ground in ("paper", "surface")),
]

Colour = tuple[int, int, int]


def colours() -> dict[str, tuple[Colour, Colour]]:
    """Each colour of the style sheet, by day and by night."""
    found = {}
    for name, value in re.findall(r"--([a-z0-9-]+): ([^;]+);", SITE):
        tones = [rgb(tone) for tone in re.findall(r"#([0-9a-f]{6})\b", value)]
        if tones and "shadow" not in name:
            found.setdefault(name, (tones[0], tones[-1]))
    return found


def rgb(digits: str) -> Colour:
    return int(digits[:2], 16), int(digits[2:4], 16), int(digits[4:], 16)


def contrast(one: Colour, other: Colour) -> float:
    """https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio"""
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: Colour) -> float:
    """https://www.w3.org/TR/WCAG22/#dfn-relative-luminance"""
    shares = (channel / 255 for channel in colour)
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_contrast_is_computed_as_the_guideline_does() -> None:
    assert contrast((0, 0, 0), (255, 255, 255)) == pytest.approx(21)
    assert contrast((119, 119, 119), (255, 255, 255)) == pytest.approx(4.48, abs=0.005)


@pytest.mark.parametrize(("text", "ground", "least"), READ)
def test_text_has_contrast_in_light_and_dark_mode(text: str, ground: str, least: float) -> None:
    for front, back in zip(colours()[text], colours()[ground], strict=True):
        assert contrast(front, back) >= least


@pytest.mark.parametrize("sheet", STYLES, ids=lambda path: path.name)
def test_style_sheets_use_known_names_and_load_nothing(sheet: Path) -> None:
    style = sheet.read_text(encoding="utf-8")
    defined = set(re.findall(r"(--[a-z0-9-]+):", SITE + style))
    assert set(re.findall(r"var\((--[a-z0-9-]+)", style)) <= defined
    assert not re.search(
        r"@import|url\((?!['\"]?(data:|#))|//[a-z]", re.sub(r"/\*.*?\*/", "", style, flags=re.S)
    )


class Policed(HTMLParser):
    """Collects what the pages' content security policy would stop."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        if tag == "style" or "style" in attributes:
            self.found.append(f"a style in <{tag}>")
        if tag == "script" and "src" not in attributes and attributes.get("type") != "application/json":
            self.found.append("a script without src")
        self.found += [f"{name} of <{tag}>" for name in attributes if name.startswith("on")]
        self.found += [
            f"{value} in <{tag}>"
            for name, value in attributes.items()
            if name in {"src", "srcset", "href"} and tag not in {"a", "use"} and "//" in (value or "")
        ]


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_templates_keep_to_the_security_policy(template: Path) -> None:
    police = Policed()
    # Without its logic, which may stand inside a tag.
    police.feed(re.sub(r"{#.*?#}|{%.*?%}", "", template.read_text(encoding="utf-8"), flags=re.S))
    assert police.found == []


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_no_template_turns_escaping_off(template: Path) -> None:
    text = template.read_text(encoding="utf-8")
    assert not re.search(r"\|\s*safe\b|autoescape\s+false", text)


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_every_page_has_the_frame_of_all_pages(template: Path) -> None:
    text = template.read_text(encoding="utf-8")
    assert ("<html" in text) == (template.name == "base.html")
    is_part = template.name.endswith("-parts.html")  # of a page that extends the frame
    if ("<h1" in text and not is_part) or "{% block main %}" in text:
        assert text.startswith('{% extends "webapps/base.html" %}') or template.name == "base.html"
        assert "{% block title %}" in text


def named_assets() -> Iterator[str]:
    for template in TEMPLATES:
        yield from re.findall(r"asset\(['\"]([^'\"]+)['\"]\)", template.read_text(encoding="utf-8"))


def test_every_asset_that_a_template_names_is_there() -> None:
    names = set(named_assets())
    assert "css/site.css" in names
    assert [name for name in sorted(names) if not (ROOM / "static" / name).is_file()] == []
