"""axe must find no violation in the view Runs and in a report: each view at one width and in one theme, or in all if all tests run; and
a report is used by keyboard.
"""

import pytest

from support.browser import accessibility
from support.selection import some
from support.wire import connect, push_headers

SIZES = [(width, scheme) for scheme in ("light", "dark") for width in (320, 390, 768, 1024, 1440, 2560)]
LIVE = {"runs": "/?view=runs", "run": "/?view=runs&run={run}", "no run": "/?view=runs&run=r999"}
IN_FILE = {"report": "", "list": "view=inbox", "push": "view=inbox&push={seq}", "verdict": "view=inbox&push={seq}&tab=verdict", "overview": "view=overview",
           "findings": "view=findings", "connections": "view=connections", "nothing": "view=inbox&q=status:999"}
DRAWN = {"runs": ".runs tbody tr", "run": ".report-verdict", "no run": ".runs .notice.is-error", "report": ".report-verdict", "list": ".row .row-title", "push": ".statement",
         "verdict": ".verdict-story", "overview": ".tile", "findings": ".finding", "connections": ".lane-bar, .track-columns", "nothing": ".list-note .empty"}


@pytest.fixture(scope="module")
def run(server):
    """A run with a failed test, a push that is accepted at its second attempt, and a lost one; returns its id."""
    server.api("POST", "/reset")
    run = server.request("POST", "/api/v1/runs", {"name": "ci 4711", "labels": {"suite": "billing"}}).json["id"]
    number = server.request("POST", f"/api/v1/runs/{run}/tests", {"name": "tests/test_retry.py::test_503"}).json["number"]
    with connect(server) as wire:
        for device, status in (("ab" * 32, 503), ("ab" * 32, None), ("cd" * 32, 503)):
            if status:
                server.api("POST", "/rules", {"name": "down", "do": {"respond": {"status": status}}})
            wire.response(wire.open(push_headers(server, device), b'{"aps":{"alert":"Order 4711"}}'))
            server.api("POST", "/reset", {"rules": True})
    server.api("PATCH", f"/runs/{run}/tests/{number}", {"outcome": "failed", "message": "AssertionError: expected 2, found 1"})
    server.api("PATCH", f"/runs/{run}", {"ended": True})
    return run


@pytest.fixture
def empty_inbox():
    """The pushes of the run are kept for all tests."""


@pytest.fixture(scope="module")
def report(server, run, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_bytes(server.request("GET", f"/api/v1/runs/{run}/report").body)
    return path


@pytest.fixture(scope="module")
def opened(browser, report):
    """The report in one page for all tests."""
    context = browser.browser.new_context(offline=True, reduced_motion="reduce")
    page = context.new_page()
    page.set_default_timeout(20_000)
    page.goto(report.as_uri())
    page.locator("body[data-state=ready]").wait_for()
    yield page
    context.close()


def violations(page, width, scheme):
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    found = accessibility(page)
    actual = page.evaluate("() => document.documentElement.scrollWidth")
    return found + ([f"the page has {actual} pixels"] if actual > width else [])


def cases(names):
    return [(name, width, scheme) for number, name in enumerate(names) for width, scheme in some(SIZES, 1, 5 * number)]


@pytest.mark.parametrize(("name", "width", "scheme"), cases(LIVE))
def test_no_violation_in_runs(kept_view, run, name, width, scheme):
    kept_view.visit(LIVE[name].format(run=run))
    kept_view.page.locator(DRAWN[name]).first.wait_for()
    assert violations(kept_view.page, width, scheme) == []
    if name == "no run":
        kept_view.forget_complaint()  # The browser logs the 404.


@pytest.mark.parametrize(("name", "width", "scheme"), cases(IN_FILE))
def test_no_violation_in_a_report(server, opened, run, name, width, scheme):
    seq = server.pushes(q=f"run:{run}")[0]["seq"]
    opened.evaluate("(hash) => { location.hash = hash; }", IN_FILE[name].format(seq=seq))
    opened.locator(DRAWN[name]).first.wait_for()
    assert violations(opened, width, scheme) == []


def test_a_report_is_used_by_keyboard(opened):
    opened.set_viewport_size({"width": 1440, "height": 900})
    opened.evaluate("() => { location.hash = ''; document.activeElement.blur(); }")
    opened.locator(".report-verdict").wait_for()
    stops = []
    for _ in range(40):
        opened.keyboard.press("Tab")
        stops.append(opened.evaluate("() => document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent"))
        if (stops[-1] or "").startswith("Open push"):
            break
    assert stops[-1].startswith("Open push"), stops
    opened.keyboard.press("Enter")
    opened.locator(".detail-title").wait_for()
    opened.keyboard.press("5")
    opened.locator(".verdict-story").wait_for()
    opened.keyboard.press("Escape")
    opened.locator(".detail-title").wait_for(state="detached")
    opened.keyboard.press("j")
    opened.keyboard.press("Enter")
    opened.locator(".detail-title").wait_for()
    opened.keyboard.press("Escape")
    opened.keyboard.press("Escape")
    opened.locator(".report-verdict").wait_for()
