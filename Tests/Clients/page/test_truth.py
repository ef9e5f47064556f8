"""What the web UI says is true: delivery, counts, searches, links, imports, the clock, and changes by others."""

import json
import pathlib
import re
import time
import urllib.parse
import urllib.request
import uuid

import pytest

from support import stores

TOKEN = "740f4707bebcf74f9b7c25d48e3358945f6aa01da5ddb387462c7eaf61bb78ad"
FIXTURES = {"devices": [{"id": "anna", "apps": [{"bundle_id": "com.example.app", "state": "enabled", "tokens": {"alert": TOKEN}}]}]}


def rows(view, number):
    """Waits until the list has this many rows with content."""
    view.until("(number) => document.querySelectorAll('.row .row-title').length === number", number)


def parameters(view):
    return dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(view.url).query))


def group(view, name):
    return view.page.locator(f"[data-group={name}] .group-count").inner_text().replace("\N{NARROW NO-BREAK SPACE}", "")


def count(view):
    return view.page.locator(".list-count").inner_text().replace("\N{NARROW NO-BREAK SPACE}", "")


# Delivery


def test_the_preview_follows_the_delivery(start, open_page, provider):
    server = start()
    view, one = open_page(server).live(), provider(server)
    for device_state, app_state, statement, step in (
            ("online", "enabled", "The device displays this.", "Delivered to Device"),
            ("online", "disabled", "Notifications are disabled for the app", "Discarded - Disabled"),
            ("offline", "enabled", "The device is offline: the push is stored", "Stored - Device Offline"),
            ("online", "removed", "The device token is not registered any more", "Discarded - Token Unregistered")):
        fixtures = {"devices": [FIXTURES["devices"][0] | {"state": device_state, "apps": [FIXTURES["devices"][0]["apps"][0] | {"state": app_state}]}]}
        assert server.request("PUT", "/api/v1/fixtures", fixtures).status == 200
        assert one.alert(TOKEN, "Hello") == 200
        seq = server.pushes()[-1]["seq"]
        view.visit(f"/?push={seq}")
        panel = view.page.locator(f".tab-panel[data-seq='{seq}']")
        panel.locator(".statement", has_text=statement).wait_for()
        assert step in view.page.get_by_role("list", name="Delivery").inner_text()
        assert ("is-dimmed" in panel.locator(".phone").get_attribute("class")) == (not step.startswith("Delivered"))
    # One that the device ignores, for a reason that its record does not have.
    start_token = "5ee7" * 40
    server.request("PUT", "/api/v1/fixtures", {"devices": [{"id": "anna", "apps": [{"bundle_id": "com.example.app", "tokens": {"liveactivity_start": start_token}}]}]})
    one.push(start_token, {"aps": {"timestamp": int(time.time()), "event": "update", "content-state": {"eta": 1}}}, topic="com.example.app.push-type.liveactivity", type="liveactivity")
    view.visit(f"/?push={server.pushes()[-1]['seq']}")
    view.page.locator(".statement", has_text="The event update was sent to a push-to-start token").wait_for()


def test_each_state_of_a_delivery_has_a_true_text(kept_view):
    source = (pathlib.Path(__file__).parents[3] / "Sources/Rules/DeliveryState.swift").read_text()
    states = re.findall(r'case \.\w+: "(.+)"', source)
    assert len(states) == 10
    causes = re.findall(r'case \w+ = "(\w+)"', (pathlib.Path(__file__).parents[3] / "Sources/Devices/Deliveries.swift").read_text().split("enum HoldCause")[1].split("\n}")[0])
    assert len(causes) == 3
    held = "Stored - Power Considerations"
    # What the record of an alert has beside its delivery, and a part of the text.
    cases = [({"delivery": state}, None) for state in states] + [({"delivery": held, "held_by": cause}, cause.split("_")[0]) for cause in causes] + [
        ({"delivery": held}, "saves power"), ({"delivery": held, "apns": {"push_type": "background"}}, "saves power, or the app was force-quit"),
        ({"delivery": held, "findings": ["background-budget"]}, "budget"),
        ({"delivery": "Stored - Device Offline", "findings": ["overwritten-in-storage"]}, "never delivered"),
        ({"delivery": "Received by APNs", "findings": ["overwritten-before-ack"]}, "never shown"),
        ({"delivery": "Delivered to Device", "findings": ["would-not-show"]}, "ignores this push"), ({"delivery": "Delivered to Device", "findings": ["background-budget"]}, "exceeds a budget"),
        ({"accepted": False, "served": {"status": 410, "reason": "Unregistered"}}, "did not accept this push (410 Unregistered)"),
        ({"accepted": False, "isPredicted": True, "served": {"status": 410, "reason": "Unregistered"}}, "would not accept this push (410 Unregistered)"),
        ({"accepted": False, "outcome": "pending"}, "still delayed")]
    found = kept_view.page.evaluate("""async (cases) => { const { display } = await import("/page/modules/preview/display.js");
        return cases.map((one) => display({ accepted: true, apns: { push_type: "alert" }, request: { payload: { aps: { alert: "x", "content-available": 1 } } }, ...one })); }""", [one for one, _ in cases])
    for (given, part), preview in zip(cases, found):
        isShown = given.get("delivery", "").startswith("Delivered") and "findings" not in given
        assert preview["shows"] == isShown and (preview["why"] is None) == isShown, given
        if not isShown:
            assert part is None or part.lower() in preview["why"].lower(), (given, preview["why"])
            # No state falls back to its name.
            assert given.get("delivery", "?") not in preview["why"], given


def test_the_reasons_of_the_form_are_those_of_apns(kept_view):
    source = (pathlib.Path(__file__).parents[3] / "Sources/Rules/Reason.swift").read_text()
    statuses = {reason: int(status) for reason, status in re.findall(r'\(\s*"(\w+)", (\d{3}),', source)}
    found = kept_view.page.evaluate('async () => (await import("/page/modules/panels/reasons.js")).REASONS')
    offered = {reason: int(status) for status, reasons in found.items() for reason in reasons}
    assert len(offered) > 30 and offered.items() <= statuses.items()


def test_a_delayed_push_counts_once_in_a_sorted_list(kept_view):
    """It is an event at its arrival, and at its response."""
    found = kept_view.page.evaluate("""async () => { const { Records } = await import("/page/modules/records.js");
        const records = new Records(() => {});
        records.sort = "topic";
        return [...[5, 5, 6].map((seq) => records.addAll([{ seq }])), records.unlisted.size]; }""")
    assert found == [1, 0, 1, 2]


def test_the_preview_of_a_stored_push_changes_when_it_is_delivered(start, open_page, provider):
    server = start()
    server.request("PUT", "/api/v1/fixtures", {"devices": [FIXTURES["devices"][0] | {"state": "offline"}]})
    provider(server).alert(TOKEN, "Later")
    view = open_page(server, "/?push=1").live()
    view.page.locator(".statement", has_text="is stored").wait_for()
    server.api("POST", "/devices/anna/online", {})
    view.page.locator(".statement", has_text="The device displays this.").wait_for()


# Counts and searches


def test_grouped_retries_agree_with_the_search(start, open_page, provider, device):
    """A push is listed if any of its attempts matches; the row says which attempt it shows, of how many."""
    server = start("--profile", "flaky-503?rate=1&streak=2")
    one = provider(server)
    assert [one.alert(device, "Again") for _ in range(3)] == [503, 503, 200]
    assert [one.alert("ab12" * 16, "Lost") for _ in range(2)] == [503, 503]
    view = open_page(server, "/?q=status:503&fold=1").live()
    count, shown = view.page.locator(".list-count"), view.page.locator(".row .row-status")
    for search, pushes, expected in (
            ("status:503", "2 pushes, 4 attempts", [("503", "2/2"), ("503", "2/3 → 200")]), ("attempt:2", "2 pushes, 2 attempts", [("503", "2/2"), ("503", "2/3 → 200")]),
            ("status:200", "1 push, 1 attempt", [("200", "3/3")]), ("is:faulted", "2 pushes, 4 attempts", [("503", "2/2"), ("503", "2/3 → 200")]),
            ("finding:hot-retry", "2 pushes, 3 attempts", [("503", "2/2"), ("200", "3/3")]), ("", "2 pushes, 5 attempts", [("503", "2/2"), ("200", "3/3")])):
        view.visit(f"/?q={search}&fold=1")
        view.until("([text, rows]) => document.querySelector('.list-count').textContent === text && document.querySelectorAll('.row .chip').length >= rows", [pushes, len(expected)])
        view.until("(chips) => [...document.querySelectorAll('.row .is-cell-attempt')].map((one) => one.textContent.replace('attempt ', '')).join() === chips", ",".join(chip for _, chip in expected))
        assert shown.all_inner_texts() == [status for status, _ in expected], search
    # The row follows its push, stays selected, and the list has no second one.
    view.row("Lost").locator(".row-title").click(modifiers=["Control"])
    assert one.alert("ab12" * 16, "Lost") == 200
    view.row("Lost").locator(".chip", has_text="3/3").wait_for()
    view.await_rows(2)
    assert count.inner_text() == "2 pushes, 6 attempts"
    assert view.page.locator(".row[aria-selected=true] .row-title").all_inner_texts() == ["Lost"]


def test_counts_of_a_store_are_exact(start, open_page, tmp_path, device):
    server = start("--store", f"sqlite:{tmp_path / 'inbox.db'}?memory_records=500")
    stores.load(server, 11_000, device=device)
    assert server.api("GET", "/pushes", order="desc")["matched"] is None
    view = open_page(server)
    texts = view.page.evaluate("""() => new Promise((resolve) => {
        const texts = [];
        new MutationObserver(() => {
            const text = document.querySelector(".list-count")?.innerText;
            if (text && text !== texts.at(-1)) texts.push(text);
            if (text?.startsWith("11")) resolve(texts);
        }).observe(document.body, { subtree: true, childList: true, characterData: true });
    })""")
    texts = [text.replace("\N{NARROW NO-BREAK SPACE}", "") for text in texts]
    assert texts[-1] == "11000 pushes" and all(re.match("0 pushes|at least|11000", text) for text in texts), texts


def test_an_invalid_search_says_that_the_results_are_those_of_the_search_before(start, open_page, provider, device):
    server = start()
    one = provider(server)
    one.alert(device, "Good")
    one.push(device, {"aps": {"alert": "Bad"}}, topic="")
    view = open_page(server, "/?q=status:400").live()
    rows(view, 1)
    view.page.get_by_label("Search pushes").fill("stauts:503")
    note = view.page.locator(".old-results")
    note.get_by_text("status:400").wait_for()
    rows(view, 1)
    # The Overview does not show numbers of another search either.
    view.page.locator(".detail .overview .is-error", has_text="stauts").wait_for()
    assert view.page.locator(".detail .tiles").is_hidden()
    # What acts on the list names its search.
    view.page.get_by_role("button", name="Clear", exact=True).click()
    view.page.get_by_role("dialog").get_by_label("The push that matches status:400").wait_for()
    view.page.keyboard.press("Escape")
    note.get_by_role("button", name="Back to that search").click()
    note.wait_for(state="hidden")
    assert parameters(view)["q"] == "status:400"
    view.complaints.clear()  # The browser logs each 400.


# Changes by others


def test_pushes_that_another_tab_deletes_leave_the_list(start, open_page, provider, device):
    server = start()
    one = provider(server)
    for number in range(4):
        one.alert(device, f"Row {number}")
    view, other = open_page(server).live(), open_page(server).live()
    rows(view, 4)
    rows(other, 4)
    view.row("Row 1").locator(".row-title").click()
    view.row("Row 2").locator(".row-title").click(modifiers=["Control"])
    view.page.get_by_role("button", name="Clear", exact=True).click()
    view.page.get_by_role("dialog").get_by_role("button", name="Delete 2 pushes").click()
    rows(other, 2)
    other.until("() => document.querySelector('[data-group=all] .group-count')?.textContent === '2'")
    assert count(other) == "2 pushes"


def test_a_deletion_and_a_change_of_the_clock_are_events(start, provider, device):
    server = start()
    provider(server).alert(device, "Deleted")
    provider(server).alert(device, "Kept")
    stream = urllib.request.urlopen(f"http://127.0.0.1:{server.admin_port}/api/v1/events", timeout=10)
    lines = []

    def read_until(event):
        while lines[-2:-1] != [f"event: {event}"]:
            line = stream.readline()
            assert line, f"the stream ended before {event}"
            if line.strip():
                lines.append(line.decode().strip())
        return json.loads(stream.readline().decode().removeprefix("data: "))

    stream.readline(), stream.readline()  # the comment and the id of the beginning
    server.api("DELETE", "/pushes", seqs="1")
    assert read_until("deleted") == {"deleted": 1}
    server.api("POST", "/clock/advance", {"by": "26h"})
    clock = read_until("clock")
    assert clock["mode"] == "real" and abs(clock["offset_ms"] - 26 * 3_600_000) < 5000 and clock["rejects_new_tokens"]
    stream.close()


def test_a_moved_clock_is_in_the_bar_with_the_way_back(start, open_page, provider, device):
    server = start()
    view = open_page(server).live()
    bar = view.page.locator(".bar-clock")
    server.api("POST", "/clock/advance", {"by": "26h"})
    bar.get_by_text("clock +26 h").wait_for()
    assert provider(server).alert(device, "Expired") == 403
    view.page.get_by_text("gets 403 ExpiredProviderToken until the clock shows the real time").first.wait_for()
    bar.get_by_role("button", name="Real time").click()
    bar.wait_for(state="hidden")
    assert server.api("GET", "/clock")["mode"] == "real"
    server.api("POST", "/clock/advance", {"by": "-72h"})
    bar.get_by_text("clock −3 d").wait_for()
    # A reset by a test sets it back.
    server.api("POST", "/reset", {"clock": True})
    bar.wait_for(state="hidden")


# Links and imports


def test_a_link_is_not_mistaken_after_an_import(start, open_page, provider, device):
    """An import has the same apns-ids again; a link names the number of the push, too."""
    server = start()
    one = provider(server)
    ids = [str(uuid.uuid4()) for _ in range(2)]
    for number, id in enumerate(ids):
        one.push(device, {"aps": {"alert": f"Row {number}"}}, apns_id=id)
    view = open_page(server).live()
    view.row("Row 0").locator(".row-title").click()
    view.until("() => new URLSearchParams(location.search).get('seq') === '1'")
    link = view.url
    exported = server.request("GET", "/api/v1/export", format="ndjson").body
    server.request("POST", "/api/v1/import", exported, headers={"content-type": "application/x-ndjson"})
    view.page.goto(link)
    view.page.locator(".detail-line", has_text="#1").wait_for()
    # Without the push of that number, the newest one with the id is shown, and the page says so.
    view.page.goto(f"{view.base}/?push={ids[0]}&seq=2")
    view.page.locator(".toast", has_text="#2 is not the push of this link").wait_for()
    view.page.locator(".detail-line", has_text="#3").wait_for()


def test_connections_of_an_import_are_not_those_of_the_server(start, open_page, provider, device):
    server = start()
    provider(server).alert(device, "Mine")
    exported = server.request("GET", "/api/v1/export", format="ndjson").body
    # More pushes at one time than a connection has rows for.
    record = next(json.loads(line) for line in exported.splitlines() if b'"seq"' in line)
    records = "".join(json.dumps(record | {"seq": number}) + "\n" for number in range(1, 6))
    response = server.request("POST", "/api/v1/import", records.encode(), headers={"content-type": "application/x-ndjson"})
    assert response.json["imported"] == 5, response.body
    live, imported, *_ = server.pushes()
    assert imported["connection"]["id"] == f"import 2: {live['connection']['id']}"
    view = open_page(server, f"/?q=connection:{live['connection']['id']}").live()
    rows(view, 1)
    view.page.goto(f"{view.base}/?push={imported['seq']}")
    view.page.get_by_role("group", name="Add to the search").get_by_role("button", name="connection").click()
    rows(view, 5)
    condition = f'connection:"import 2: {live["connection"]["id"]}"'
    assert parameters(view)["q"] == condition
    # A bar of several pushes that zooming cannot separate lists them.
    view.visit(f"/?push={imported['seq']}&tab=timeline")
    view.page.locator(".lane-bar.is-many").click()
    view.until("(start) => new URLSearchParams(location.search).get('q')?.startsWith(start)", f"{condition} since:")
    rows(view, 5)
    view.forget_complaint()  # The browser logs the 404 of the connection.


# The address


def test_a_token_appended_in_an_open_tab_is_used_and_leaves_the_address(start, open_page, provider, device):
    server = start("--admin-token", "secret")
    provider(server).alert(device, "Secret")
    view = open_page(server)
    view.page.get_by_role("dialog").wait_for()
    view.page.evaluate("() => { location.hash = 'token=secret'; }")
    rows(view, 1)
    assert view.page.get_by_role("dialog").count() == 0
    assert "secret" not in view.url and "#" not in view.url
    view.complaints.clear()  # The browser logs the 401.


# The Overview


def test_the_overview_shows_what_a_provider_waits_for(start, open_page, provider, device):
    server = start("--profile", "flaky-503?rate=1&streak=1")
    one = provider(server)
    assert one.alert(device, "Again") == 503
    time.sleep(0.3)
    assert one.alert(device, "Again") == 200
    stats = server.api("GET", "/stats")
    assert stats["time_to_acceptance"]["pushes"] == 1 and 300 <= stats["time_to_acceptance"]["max_ms"] < 20_000
    assert stats["retry_delay"]["retries"] == 1 and 300 <= stats["retry_delay"]["median_ms"] < 20_000
    # A search that leaves out the first attempt does not know the time.
    assert server.api("GET", "/stats", q="attempt:2")["time_to_acceptance"]["pushes"] == 0
    view = open_page(server, "/?view=overview").live()
    tile = view.page.locator(".tile", has_text="Time to success")
    tile.wait_for()
    assert re.search(r"\d+ ms|\d\.\d s", tile.inner_text())
    chart = view.page.locator(".delays", has_text="Waits before retries")
    assert re.search(r"(250|500) ms to \S+ \S*\s+1\b|1\.0 s to", " ".join(chart.inner_text().split())), chart.inner_text()
    # The mock's own time for a response is no measure.
    assert "p99" not in view.page.locator(".tiles").inner_text()
    ends = view.page.locator(".chart-axis span").all_inner_texts()
    assert ends[0] != ends[-1]
