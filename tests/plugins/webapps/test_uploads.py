"""Upload of predictions from a page: check, submission and receipt."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from markupsafe import escape
from playwright.sync_api import BrowserContext, Page, expect
from tests.core.servers import write_oracle

from collidium.testing.browser import Watch
from collidium.testing.server import ServerProcess

from .conftest import SignIn
from .visiting import Visitor

SUBMIT = "/leaderboard/tracking/submit"

pytestmark = pytest.mark.usefixtures("shared_truth")

_serial = count(1)


@pytest.fixture
def anna(web: ServerProcess, token: Callable[[str], str]) -> Iterator[Visitor]:
    """An account that was not used before."""
    with Visitor(web.base_url) as visitor:
        visitor.sign_in(token(f"submits{next(_serial)}"))
        yield visitor


@pytest.fixture
def oracle(tmp_path: Path) -> Path:
    """Perfect predictions in a file that was not sent before."""
    path = tmp_path / "oracle.parquet"
    write_oracle(path, seed=next(_serial))
    return path


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    path = tmp_path / "bad.parquet"
    pq.write_table(pa.table({"event_id": [3, 3], "hit_id": [-5, -5], "track_id": [0, -9]}), path)
    return path


def send(
    visitor: Visitor, action: str, content: bytes, secret: str | None = None, **fields: str
) -> httpx.Response:
    """Send the form as a browser without scripts does."""
    form = {"csrf_token": visitor.csrf if secret is None else secret, "action": action, **fields}
    headers = {"Origin": visitor.origin, "Sec-Fetch-Site": "same-origin"}
    file = ("predictions.parquet", content, "application/octet-stream")
    return visitor.post(SUBMIT, data=form, files={"predictions": file}, headers=headers)


# -- without scripts ----------------------------------------------------------------------------------


def test_the_format_of_files_is_public(web: ServerProcess) -> None:
    with Visitor(web.base_url) as anonymous:
        page = anonymous.get(SUBMIT)
        assert page.status_code == 200
        for part in ("Sign in to submit", "track_id", "Events 3 to 4", "collidium check tracking"):
            assert part in page.text
        assert "upload-form" not in page.text
        assert 'id="quota"' not in page.text
        assert anonymous.get("/leaderboard/nothing/submit").status_code == 404
        assert "No predictions are accepted yet" in anonymous.get("/leaderboard/jets/submit").text
        assert anonymous.post(SUBMIT, files={"predictions": b"x"}).status_code == 401


def test_check_submit_and_the_receipt(anna: Visitor, oracle: Path) -> None:
    content = oracle.read_bytes()
    checked = send(anna, "check", content, model_repo="anna/helix")
    assert (checked.status_code, "Good to submit" in checked.text) == (200, True)
    assert 'value="anna/helix"' in checked.text
    assert anna.get("/v1/me/submissions").json() == []
    left = (anna.get("/v1/challenges/tracking/quota").json())["submissions_left"]
    answer = send(anna, "submit", content, model_repo="anna/helix")
    assert answer.status_code == 303, answer.text
    for page in (SUBMIT, "/leaderboard/tracking"):
        assert f'id="quota">{left - 1} of ' in anna.get(page).text
    (kept,) = anna.get("/v1/me/submissions").json()
    assert kept["model_repo"] == "anna/helix"
    receipt = anna.get(answer.headers["Location"]).text
    assert f'href="/leaderboard/tracking#s-{kept["submission_id"]}"' in receipt
    assert kept["submission_id"] in receipt
    assert re.search(r"Rank \d", receipt)
    assert "trackml_weighted_efficiency" in receipt
    again = send(anna, "submit", content)
    assert "The same file was submitted before" in anna.get(again.headers["Location"]).text
    assert len(anna.get("/v1/me/submissions").json()) == 1


def test_every_problem_is_listed(anna: Visitor, bad: Path) -> None:
    for action in ("check", "submit"):
        answer = send(anna, action, bad.read_bytes())
        assert answer.status_code == 422
        headed = "The file has problems" if action == "check" else "Nothing was submitted"
        for part in ("hit_id is negative", "track_id is negative", "for example", "hit_id=-5", headed):
            assert part in answer.text
        assert "column hit_id" not in answer.text, "the words name it already"


def test_a_check_without_a_file_has_found_no_problems(anna: Visitor) -> None:
    answer = send(anna, "check", b"")
    assert answer.status_code == 422
    assert "Nothing was checked" in answer.text


@pytest.mark.parametrize(
    ("content", "fields", "status"),
    [
        (b"", {}, 422),
        (b"no parquet", {}, 422),
        (b"x" * (8 * 1024**2), {}, 413),
        (None, {"model_repo": "<b>no name</b>"}, 422),
    ],
)
def test_invalid_submissions_are_reported_on_the_page(
    anna: Visitor, oracle: Path, content: bytes | None, fields: dict[str, str], status: int
) -> None:
    answer = send(anna, "submit", oracle.read_bytes() if content is None else content, **fields)
    assert answer.status_code == status, answer.text
    assert "Nothing was submitted" in answer.text
    assert "<b>" not in answer.text
    assert anna.get("/v1/me/submissions").json() == []
    if fields:
        assert 'name="model_repo" value="&lt;b&gt;no name&lt;/b&gt;"' in answer.text


@pytest.mark.parametrize("size", [100, 4 * 1024**2])
def test_a_models_name_survives_the_end_of_its_session(
    anna: Visitor, token: Callable[[str], str], size: int
) -> None:
    """Without scripts; the file has to be chosen again."""
    page = anna.get(SUBMIT).text
    assert page.index('name="model_repo"') < page.index('name="predictions"'), (
        "browsers send it in this order"
    )
    form = {"csrf_token": anna.csrf, "model_repo": "anna/helix"}
    anna.cookies.clear()
    answer = anna.post(SUBMIT, data=form, files={"predictions": b"P" * size}, headers=anna.own)
    page = anna.sign_in_again(answer, token("submits-again")).text
    assert 'name="model_repo" value="anna/helix"' in page
    assert form["csrf_token"] not in answer.text


@pytest.mark.parametrize(
    "body", [b"", b"--x\r\n", b"--x\r\nContent-Disposition: form-data; name=a\r\n\r\n\xff"]
)
@pytest.mark.parametrize("kind", ["multipart/form-data", "multipart/form-data; boundary=x"])
def test_a_malformed_form_without_a_session_is_401(anna: Visitor, body: bytes, kind: str) -> None:
    anna.cookies.clear()
    answer = anna.post(SUBMIT, content=body, headers={**anna.own, "Content-Type": kind})
    assert answer.status_code == 401
    assert "next=%2Fleaderboard%2Ftracking%2Fsubmit" in answer.text


def test_a_form_without_its_secret_submits_nothing(anna: Visitor, oracle: Path) -> None:
    for secret in ("", "x", "ä"):
        answer = send(anna, "submit", oracle.read_bytes(), secret=secret)
        assert answer.status_code == 403
    foreign = {"Origin": "http://elsewhere.example", "Sec-Fetch-Site": "cross-site"}
    form = {"csrf_token": anna.csrf}
    answer = anna.post(SUBMIT, data=form, files={"predictions": oracle.read_bytes()}, headers=foreign)
    assert answer.status_code == 403
    assert anna.get("/v1/me/submissions").json() == []


def test_a_receipt_is_shown_to_its_owner_only(anna: Visitor, web: ServerProcess, oracle: Path) -> None:
    receipt = send(anna, "submit", oracle.read_bytes()).headers["Location"]
    (kept,) = anna.get("/v1/me/submissions").json()
    elsewhere = receipt.replace("/tracking/", "/jets/")
    with Visitor(web.base_url) as anonymous:
        for visitor, address in ((anonymous, receipt), (anna, elsewhere)):
            answer = visitor.get(address)
            assert answer.status_code == 303
            assert urlsplit(answer.headers["Location"]).path.endswith(kept["submission_id"])
    assert anna.get(f"{SUBMIT}?receipt=%00").status_code == 422
    for hostile in ("", "..", "x", "..%2f..", "<b>"):
        assert anna.get(f"{SUBMIT}?receipt={hostile}").status_code == 404
    assert anna.get("/leaderboard/%2e%2e/submit").status_code == 404


def test_links_are_set_on_the_page_of_the_submission(anna: Visitor, web: ServerProcess, oracle: Path) -> None:
    """By a form without scripts, for the owner alone; what they typed is escaped."""
    anna.call("POST", "/v1/benchmark/tracking/submit", content=oracle.read_bytes())
    (kept,) = anna.get("/v1/me/submissions").json()
    page = f"/leaderboard/submissions/{kept['submission_id']}"
    assert f'href="{page}#links"' in anna.get("/leaderboard/mine").text
    paper = "https://doi.org/10.1/x?a=1&b=<i>'\""
    answer = anna.fill_in(page, model_repo=" anna/none ", code_url="", paper_url=paper)
    assert (answer.status_code, answer.headers["Location"]) == (303, page)
    kept = anna.get(f"/v1/submissions/{kept['submission_id']}").json()
    assert (kept["model_repo"], kept["model_claim"], kept["code_url"]) == ("anna/none", "missing", None)
    shown = anna.get(page).text
    assert f'<a href="{escape(kept["paper_url"])}" rel="nofollow noopener">' in shown
    assert "<i>" not in shown
    assert re.search(r'<span class="badge warn" title="[^"]+">missing</span>', shown)
    for board in ("/leaderboard/tracking", "/leaderboard/mine", "/models/anna/none"):
        assert ">missing</span>" in anna.get(board).text, board
    with Visitor(web.base_url) as anonymous:
        assert "Save links" not in anonymous.get(page).text
        assert anonymous.post(page, data={"model_repo": "anna/other"}).status_code == 401


def test_links_survive_the_end_of_their_session(
    anna: Visitor, oracle: Path, token: Callable[[str], str]
) -> None:
    name = anna.get("/v1/me").json()["hub_username"]
    anna.call("POST", "/v1/benchmark/tracking/submit", content=oracle.read_bytes())
    (kept,) = anna.get("/v1/me/submissions").json()
    page = f"/leaderboard/submissions/{kept['submission_id']}"
    typed = {"model_repo": "anna/helix", "code_url": "https://x.example/a?b=<c>", "paper_url": ""}
    form = {**typed, "csrf_token": anna.csrf}
    anna.cookies.clear()
    again = anna.sign_in_again(anna.post(page, data=form, headers=anna.own), token(name))
    for field, value in typed.items():
        assert re.search(rf'name="{field}"[^>]* value="{re.escape(escape(value))}"', again.text), field
    assert "evil" not in anna.get(page, params={"code_url": "https://evil.example"}).text


@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", 'http://x"><script>alert(1)</script>', "https://a:b@c"]
)
def test_rejected_links_are_reported_on_the_page(anna: Visitor, oracle: Path, url: str) -> None:
    anna.call("POST", "/v1/benchmark/tracking/submit", content=oracle.read_bytes())
    (kept,) = anna.get("/v1/me/submissions").json()
    page = f"/leaderboard/submissions/{kept['submission_id']}"
    answer = anna.fill_in(page, model_repo="anna/none", code_url=url)
    assert answer.status_code == 422
    assert "Nothing was changed" in answer.text
    assert f'name="code_url" type="url" value="{escape(url)}"' in answer.text
    assert "<script>alert" not in answer.text
    assert f'href="{escape(url)}"' not in answer.text
    assert anna.get(f"/v1/submissions/{kept['submission_id']}").json()["model_repo"] is None
    assert anna.post(page, data={"model_repo": "anna/none"}).status_code == 403
    assert anna.fill_in("/leaderboard/submissions/nothing", model_repo="anna/none").status_code == 404


# -- in a browser -------------------------------------------------------------------------------------


def test_from_the_choice_of_a_file_to_the_receipt(
    page: Page, sign_in: SignIn, watch: Watch, oracle: Path, bad: Path, tmp_path: Path
) -> None:
    sign_in(page, "submits-in-a-browser")
    page.goto(SUBMIT)
    file = page.get_by_label("A parquet file of predictions")
    check, submit = page.get_by_role("button", name="Check"), page.get_by_role("button", name="Submit")
    text, huge = tmp_path / "text.parquet", tmp_path / "huge.parquet"
    text.write_text("not parquet, whatever its name")
    with huge.open("wb") as sparse:
        sparse.truncate(9 * 10**9)
    for path, trouble in ((text, "is not a parquet file"), (huge, "has 9 GB; at most")):
        file.set_input_files(path)
        expect(page.locator("#file-trouble")).to_contain_text(trouble)
    check.click()
    expect(page.locator("#file-trouble")).to_contain_text("has 9 GB")

    watch.allow("status of 422")
    file.set_input_files(bad)
    expect(page.locator("#file-trouble")).to_be_empty()
    check.click()
    expect(page.locator(".problems > li")).to_have_count(2)
    expect(page.locator(".problems")).to_contain_text("hit_id=-5")
    expect(page.locator("#outcome strong").first).to_have_text("The file has problems")
    expect(page.locator("#outcome")).not_to_contain_text("column hit_id")

    file.set_input_files(oracle)
    check.click()
    expect(page.get_by_text("Good to submit")).to_be_visible()
    page.get_by_label("Model").fill("someone/helix")
    submit.click()
    expect(page.get_by_role("heading", name=re.compile(r"Rank \d"))).to_be_visible()
    page.get_by_role("link", name="Your submissions").click()
    expect(page.get_by_role("cell", name="someone/helix")).to_be_visible()


def test_an_upload_is_stopped_and_an_ended_session_is_reported(
    page: Page, sign_in: SignIn, watch: Watch, context: BrowserContext, oracle: Path
) -> None:
    sign_in(page, "stops-in-a-browser")
    page.goto(SUBMIT)
    page.get_by_label("A parquet file of predictions").set_input_files(oracle)
    page.route("**/v1/benchmark/**", lambda route: None)  # it takes for ever
    page.get_by_role("button", name="Check").click()
    expect(page.locator("progress")).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_text("Stopped. Nothing was kept.")).to_be_visible()
    page.unroute("**/v1/benchmark/**")

    watch.allow("status of 401")
    context.clear_cookies()
    page.get_by_role("button", name="Check").click()
    again = page.get_by_role("link", name="Sign in again")
    expect(again).to_have_attribute("href", "/web/sign-in?next=%2Fleaderboard%2Ftracking%2Fsubmit")
