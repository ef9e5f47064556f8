"""Words and details of the page: one and many, axes, errors, double clicks, and changes that another tab makes."""

import re

import pytest

from support import stores


def test_one_is_not_many(start, open_page, provider, device):
    server = start()
    server.api("PUT", "/fixtures", {"devices": [{"id": "anna", "apps": [{"bundle_id": "com.example.app", "tokens": {"alert": "aa11" * 16}}]}]})
    server.api("POST", "/channels", {"bundle_id": "com.example.app"})
    server.api("POST", "/rules", {"name": "late", "when": {"topic": "com.none"}, "do": {"respond": {"status": 429, "reason": "TooManyRequests"}}})
    provider(server).push(device, {"aps": {"alert": "One", "badge": 1}}, type=None)
    server.request("POST", "/api/v1/runs", {"name": "one"})
    view = open_page(server).live()
    view.await_rows(1)
    texts = []
    for path, drawn in (("/", ".row"), ("/?push=1&tab=timeline", ".lane-bar"), ("/?view=overview", ".tile"), ("/?view=findings", ".finding"), ("/?view=connections", ".track"),
                        ("/?view=runs", ".runs tbody tr"), ("/?view=devices", ".device-table tbody tr"), ("/?view=faults", ".clock")):
        view.visit(path)
        view.page.locator(drawn).first.wait_for()
        texts.append(view.page.locator("body").inner_text())
        if path == "/?view=devices":
            view.page.get_by_text("1 to 1 of 1 device token", exact=True).wait_for()
            view.page.get_by_role("button", name="Broadcast channels").click()
            view.page.get_by_text("1 to 1 of 1 channel", exact=True).wait_for()
        if path == "/?view=connections":
            view.page.get_by_role("button", name="GOAWAY to all").click()
            view.page.get_by_role("dialog").get_by_role("button", name="Send GOAWAY to 1 open connection").click()
            view.page.locator(".toast", has_text="GOAWAY sent: 1 connection").wait_for()
            texts.append(view.page.locator(".toast").first.inner_text())
    wrong = [found for text in texts for found in re.findall(r"(?<![\d.,#\u202f])1 (?:more |open |device |earlier )?(?:pushes|connections|values|tokens|findings|rules|events|runs|tests|channels|devices|attempts|times|bytes)\b", text)]
    assert wrong == []


def test_the_ends_of_an_axis_differ(start, open_page, provider, device):
    """Also of pushes that are exactly a day or more apart."""
    server = start()
    one = provider(server)
    one.alert(device, "Today")
    server.api("POST", "/clock/advance", {"by": "72h"})
    one.alert(device, "In three days")
    view = open_page(server, "/?view=overview").live()
    view.page.locator(".chart-axis span").first.wait_for()
    ends = view.page.locator(".chart-axis span").all_inner_texts()
    assert ends[0] != ends[-1] and re.fullmatch(r"\d+ \w{3,4} \d\d:\d\d", ends[0]), ends
    view.visit("/?view=connections")
    view.page.locator(".tracks-axis span").nth(1).wait_for()
    labels = view.page.locator(".tracks-axis span").all_inner_texts()
    assert len(set(labels)) == len(labels), labels


def test_a_response_that_ends_early_or_is_no_json_is_explained(server, open_page):
    view = open_page(server).live()
    view.page.route("**/api/v1/runs", lambda route: route.fulfill(status=200, body="<html>a proxy's page"))
    view.visit("/?view=runs")
    view.page.get_by_text("The response to GET /runs is not JSON.").wait_for()
    view.page.evaluate("""() => {
        const send = window.fetch;
        window.fetch = async (url, options) => (String(url).includes("/connections")
            ? new Response(new ReadableStream({ start(controller) { controller.error(new TypeError("network error")); } })) : send(url, options));
    }""")
    view.visit("/?view=connections")
    view.page.get_by_text("The server's response ended too early.").wait_for()
    assert "Failed to fetch" not in view.page.content() and "network error" not in view.page.content()


@pytest.mark.parametrize("path", ["/?view=faults", "/?view=devices"])
def test_a_double_click_acts_once(start, open_page, path):
    server = start()
    server.api("PUT", "/fixtures", {"devices": [{"id": "anna", "apps": [{"bundle_id": "com.example.app", "tokens": {"alert": "aa11" * 16}}]}]})
    server.api("POST", "/rules", {"name": "late", "do": {"respond": {"status": 429, "reason": "TooManyRequests"}}})
    view = open_page(server, path).live()
    sent = []
    view.page.on("request", lambda request: request.method != "GET" and "dry_run" not in (request.post_data or "") and sent.append(request.url))
    if "faults" in path:
        view.page.get_by_role("button", name="Remove late").dblclick()
        view.page.get_by_role("button", name="Remove late").wait_for(state="detached")
        view.page.locator(".toast", has_text="Removed late").wait_for()
    else:
        view.page.get_by_role("button", name="anna", exact=True).click()
        view.page.get_by_role("button", name="Offline", exact=True).or_(view.page.get_by_role("button", name="Go offline", exact=True)).first.dblclick()
        view.until("() => document.querySelector('.toast')")
    assert len(sent) == 1 and view.page.locator(".toast.is-error").count() == 0, sent


def test_changes_of_another_tab_are_shown(start, open_page):
    server = start()
    view = open_page(server, "/?view=devices").live()
    view.page.get_by_role("button", name="Registered").click()
    view.page.get_by_text("No devices are registered.").wait_for()
    server.api("PUT", "/fixtures", {"devices": [{"id": "anna", "apps": [{"bundle_id": "com.example.app", "tokens": {"alert": "aa11" * 16}}]}]})
    view.page.get_by_role("button", name="anna", exact=True).wait_for()


def test_the_list_and_the_overview_never_have_different_searches(start, open_page, provider, device):
    """Until the pushes of a new search are counted, the Overview shows no numbers."""
    server = start()
    one = provider(server)
    one.alert(device, "Good")
    one.push(device, {"aps": {"alert": "Bad"}}, topic="")
    view = open_page(server).live()
    view.page.locator(".detail .tile", has_text="Pushes").get_by_text("2", exact=True).wait_for()
    view.page.evaluate("""() => {
        window.different = [];
        new MutationObserver(() => {
            const list = Number.parseInt(document.querySelector(".list-count").textContent, 10);
            const tile = document.querySelector(".detail .overview-content:not([hidden], [aria-busy=true]) .tile dd")?.textContent;
            if (tile && Number(tile) !== list) window.different.push([list, tile, location.search]);
        }).observe(document.body, { subtree: true, childList: true, attributes: true });
    }""")
    for text, number in (("status:400", 1), ("status:200", 1), ("", 2)):
        view.page.get_by_label("Search pushes").fill(text)
        view.await_rows(number)
        view.page.locator(".detail .tile", has_text="Pushes").get_by_text(str(number), exact=True).wait_for()
    assert view.page.evaluate("() => window.different") == []


def test_a_part_of_a_connection_is_not_shown_as_all_of_it(start, open_page, device):
    server = start()
    stores.load(server, 700, device=device)
    view = open_page(server, "/?push=1&tab=timeline").live()
    view.page.get_by_text("The nearest 21 of 700 pushes of this connection; All shows the others.").wait_for()
