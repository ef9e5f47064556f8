"""The report of a run in Chromium, opened from disk without a network."""

import json
import re

import pytest

from support.faults import new_device
from support.selection import some
from support.wire import connect, push_headers

# U+0600 joins the character behind it: both are one character, although not one byte.
HOSTILE = "\u0600</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"


@pytest.fixture
def opened(browser):
    """`opened(path)` opens a report and waits until it is usable, unless `state` is None; afterwards nothing was requested and nothing complained."""
    contexts = []

    def opener(path, state="ready"):
        context = browser.browser.new_context(offline=True)
        page = context.new_page()
        page.set_viewport_size({"width": 1440, "height": 900})
        page.set_default_timeout(20_000)
        requests, complaints = [], []
        page.on("request", lambda request: request.url.startswith(("file:", "data:", "blob:")) or requests.append(request.url))
        page.on("console", lambda message: message.type in ("error", "warning") and complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        contexts.append((context, requests, complaints))
        page.goto(path.as_uri())
        if state:
            page.locator(f"body[data-state={state}]").wait_for()
        return page

    yield opener
    for context, requests, complaints in contexts:
        context.close()
        assert not requests and not complaints, (requests, complaints)


def push(server, device, body=b'{"aps":{"alert":"Order 4711 shipped"}}', **headers):
    with connect(server) as wire:
        return wire.response(wire.open(push_headers(server, device, **headers), body)).status


@pytest.fixture
def report(server, tmp_path):
    """A run with two failed tests, a lost push and hostile texts; returns the path of its report."""
    server.api("POST", "/reset")
    run = server.request("POST", "/api/v1/runs", {"name": HOSTILE, "labels": {HOSTILE: HOSTILE}}).json["id"]
    for name, is_down in (("test_good", False), ("tests/test_retry.py::test_503", True), (HOSTILE, False)):
        number = server.request("POST", f"/api/v1/runs/{run}/tests", {"name": name}).json["number"]
        server.api("POST", "/reset")
        if is_down:
            server.api("POST", "/rules", {"name": "down", "do": {"respond": {"status": 503}}})
        body = json.dumps({"aps": {"alert": HOSTILE}}).encode() if name == HOSTILE else b'{"aps":{"alert":"Order 4711"}}'
        push(server, new_device(), body)
        outcome = "passed" if name == "test_good" else "failed"
        message = None if name == "test_good" else f"AssertionError: expected 1 accepted push, found 0\n{name}:12"
        server.api("PATCH", f"/runs/{run}/tests/{number}", {"outcome": outcome, "message": message})
    server.api("PATCH", f"/runs/{run}", {"ended": True})
    path = tmp_path / "report.html"
    path.write_bytes(server.request("GET", f"/api/v1/runs/{run}/report").body)
    return path


def test_the_first_screen_names_tests_push_and_cause(opened, report):
    page = opened(report)
    text = " ".join(page.locator(".report").inner_text().split())
    assert "2 of 3 tests failed; 1 push lost" in text
    for expected in ("tests/test_retry.py::test_503", "expected 1 accepted push, found 0", "503 ServiceUnavailable", "rule down", "abandoned"):
        place = page.locator(".report").get_by_text(expected.removeprefix("rule ")).first.bounding_box()
        assert expected in text and place["y"] < 900, expected
    assert "owned" not in page.title()


def test_the_views_work_without_a_server(opened, report):
    page = opened(report)
    page.get_by_role("button", name="Open push").first.click()
    page.locator(".detail-title").wait_for()
    assert "Order 4711" in page.locator(".detail").inner_text()
    assert page.get_by_role("button", name="Edit and send again").count() == 0
    for tab in ("Payload", "Headers", "Auth", "Verdict", "Timeline"):
        page.get_by_role("tab", name=tab).click()
    page.locator("#search").fill("status:503")
    page.wait_for_function("() => document.querySelectorAll('.row').length === 1")
    page.locator("#search").fill("test:*retry* !status:200 4711")
    page.wait_for_function("() => document.querySelectorAll('.row').length === 1")
    page.locator("#search").fill("topic:nothing")
    page.get_by_text("No pushes match.").wait_for()
    page.locator("#search").fill("nothing:1")
    page.get_by_text("unknown field").first.wait_for()
    page.locator("#search").fill("")
    page.wait_for_function("() => document.querySelectorAll('.row').length === 3")
    for view in ("Overview", "Findings", "Connections", "Report"):
        page.locator(f"[data-group='view {view.lower()}']").click()
        if view == "Overview":
            page.locator("main .overview .tile").first.wait_for()
    assert page.locator("[data-group^='view faults'], [data-group^='view devices']").count() == 0
    page.go_back()
    page.reload()
    page.locator("body[data-state=ready]").wait_for()


def test_a_report_in_a_background_tab_is_counted_when_it_is_shown(opened, report):
    page = opened(report).context.new_page()
    page.add_init_script("Object.defineProperty(document, 'hidden', { configurable: true, value: true })")
    page.goto(report.as_uri() + "#view=inbox")
    page.locator(".row .row-title").first.wait_for()
    assert page.locator("[data-group=all] .group-count").count() == 0, "a hidden page counts nothing"
    page.evaluate("() => { delete document.hidden; document.dispatchEvent(new Event('visibilitychange', { bubbles: true })); }")
    page.locator("[data-group=all] .group-count", has_text="3").wait_for()


def test_a_report_says_how_many_pushes_it_does_not_contain(opened, report):
    report.write_text(report.read_text().replace('"embedded":3}', '"embedded":2}'))
    page = opened(report)
    page.get_by_text("This report contains 2 of 3 pushes: first those that were not accepted. The others are counted.").wait_for()


def test_the_live_page_lists_runs_and_shows_their_reports(server, open_page, report):
    other = server.request("POST", "/api/v1/runs", {"name": "nightly 12", "labels": {"suite": "billing"}}).json["id"]
    run = server.api("GET", "/runs")["items"][1]["id"]
    # The link of a CI page.
    view = open_page(server, f"/#/runs/{run}").live()
    view.page.locator(".report-failure").first.wait_for()
    assert view.url.endswith(f"/?view=runs&run={run}")
    text = " ".join(view.page.locator(".report").inner_text().split())
    assert "2 of 3 tests failed; 1 push lost" in text and "503 ServiceUnavailable" in text
    choice = view.page.get_by_label("Compare with").element_handle()
    choice.select_option(other)
    view.page.get_by_role("heading", name=f"Since {other}").wait_for()
    assert choice.evaluate("(one) => one.isConnected"), "the list stays open while the report changes"
    view.page.locator(".report-failure", has_text="test_503").get_by_role("button", name="Show in the list").click()
    # A reset has removed the push of this test from the inbox.
    view.page.get_by_text("No pushes match.").wait_for()
    view.page.go_back()
    view.page.get_by_role("button", name="All runs").click()
    view.page.locator(".runs tbody tr", has_text="nightly 12").wait_for()
    view.page.get_by_label("Filter runs").fill("billing")
    view.until("() => document.querySelectorAll('.runs tbody tr').length === 1")
    assert other in view.page.locator(".runs tbody tr").inner_text()
    push(server, new_device(), b'{"aps":{"alert":"In the nightly run"}}')
    view.page.get_by_role("button", name=f"Pushes of {other}").click()
    view.await_rows(1)
    server.api("PATCH", f"/runs/{other}", {"ended": True})
    view.page.locator("[data-group='view runs']").click()
    view.page.locator(".runs tbody tr", has_text="passed").wait_for()
    # In an open tab, only the fragment changes.
    view.page.evaluate("() => { location.hash = '#/runs/r999'; }")
    view.page.get_by_text("there is no run r999").wait_for()
    view.forget_complaint()
    # The id of a run in a view of several servers.
    view.page.evaluate("() => { location.hash = '#/runs/load_1%3Ar3'; }")
    view.page.get_by_text("there is no run load_1:r3").wait_for()
    view.page.reload()
    view.page.get_by_text("there is no run load_1:r3").wait_for()
    assert "view=runs&run=load_1%3Ar3" in view.url
    view.forget_complaint()


def test_the_policy_forbids_everything_but_the_file(report):
    text = report.read_text()
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)[1]
    assert policy.startswith("default-src 'none'; script-src 'sha256-") and "unsafe" not in policy
    assert text.count("</script>") == 3 and HOSTILE not in text
    assert not re.search(r'(src|href)="(?!#)', text.split("<script")[0])


@pytest.mark.parametrize("search", some([
    "status:503", "status:5*", "status:>=400", "!status:503", "outcome:accepted", "reason:ServiceUnavailable", "is:faulted", "is:retry",
    "finding:*", "type:alert", "topic:com.example.*", "payload./aps/alert:*4711*", "header.apns-priority:10", "larger:20",
    "smaller:1K", "attempt:1", "kind:*", "since:-1h", "rule:down", "onerror", "order 4711", "!4711", "text:\"Order 4711\"", "size:10..40",
    "connection:c*", "environment:sandbox", "status:503 status:200", "accepted:false", "delivery:*", "run:*", "test:\"test_good\"",
], 8))
def test_searches_find_what_the_server_finds(server, opened, report, search):
    page = opened(report)
    run = json.loads(re.search(r'id="summary">(.*?)</script>', report.read_text())[1])["runs"][0]["id"]
    export = server.request("GET", f"/api/v1/runs/{run}/report", format="ndjson").body
    server.api("POST", "/reset")
    # Imported connections have other ids unless they count as those of this server.
    own = {"connections": "own"} if search.startswith("connection:") else {}
    server.request("POST", "/api/v1/import", export, headers={"content-type": "application/x-ndjson"}, **own)
    expected = server.api("GET", "/pushes", search=search)["matched"]
    page.locator("[data-group='view inbox']").click()
    page.locator("#search").fill(search)
    page.wait_for_function("([wanted, number]) => document.querySelector('#search').value === wanted && new URLSearchParams(location.hash.slice(1)).get('q') === wanted", arg=[search, expected])
    page.wait_for_function("(number) => document.querySelectorAll('.row').length === number", arg=expected)


def test_a_report_that_is_cut_off_says_so(opened, report):
    text = report.read_text()
    start = text.index('id="records">') + len('id="records">')
    end = text.index("<", start)
    report.write_text(text[:start] + text[start:end][: (end - start) // 8 * 4] + text[end:])
    page = opened(report, state=None)
    page.get_by_text("The pushes of this report cannot be read: the file is cut off or was changed.").first.wait_for()


def test_a_report_that_ends_early_says_so(opened, report):
    text = report.read_text()
    page = None
    for end in (text.index('id="summary">') + 100, text.index('id="records">') + 100, text.index("<script") + 1000):
        report.write_text(text[:end])
        page = page or opened(report, state=None)
        page.goto(report.as_uri())
        page.get_by_text("the file is cut off").first.wait_for()


def test_a_misspelt_field_in_a_report_is_named(opened, report):
    page = opened(report)
    page.locator("[data-group='view inbox']").click()
    for word, field in (("stauts:503", "status"), ("outcom:accepted", "outcome"), ("tset:x", "test"), ("reasson:x", "reason")):
        page.locator("#search").fill(word)
        page.get_by_text(f"did you mean {field}?").first.wait_for()
