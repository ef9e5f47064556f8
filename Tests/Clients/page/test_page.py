"""The web UI in a real browser: list, search, keys, tabs, and the preview of what a device displays."""

import json
import re
import secrets
import ssl
import time

import httpx
import pytest

NOW = int(time.time())

# A push's type, topic suffix and payload, the text of its row, and the texts of its preview.
KINDS = [
    ("alert", "", {"aps": {"alert": {"title": "Hello there", "subtitle": "Sub", "body": "Body text"}, "badge": 3, "sound": "chime.caf",
     "interruption-level": "time-sensitive", "thread-id": "orders"}}, "Hello there",
     ["A device displays this", "Sub", "Body text", "chime.caf", "time-sensitive", "orders"]),
    ("alert", "", {"aps": {"alert": {"title-loc-key": "SHIPPED", "loc-key": "PARCEL_%@", "loc-args": ["4711"]}}}, "SHIPPED",
     ["A device displays this", "PARCEL_%@", "4711", "looked up in the app"]),
    ("alert", "", {"aps": {"badge": 0}}, "badge 0", ["Nothing is displayed", "The badge of the app becomes 0"]),
    ("alert", "", {"aps": {}}, "nothing to show", ["Nothing is displayed", "neither text nor badge nor sound"]),
    ("alert", "", {"aps": {"alert": 7}}, "nothing to show", ["Nothing is displayed", "neither a string nor an object"]),
    ("alert", "", "no JSON", "not JSON", ["Nothing is displayed", "not JSON", "The device drops it"]),
    ("alert", "", [1], "nothing to show", ["Nothing is displayed", "not an object"]),
    ("background", "", {"aps": {"content-available": 1}}, "silent", ["Nothing is displayed", "wakes the app", "Send 5"]),
    ("background", "", {"aps": {"alert": "x"}}, "x", ["Nothing is displayed", "not woken"]),
    ("voip", ".voip", {"aps": {}, "caller_name": "Ada Lovelace"}, "voip call", ["shows nothing by itself", "Ada Lovelace"]),
    ("pushtotalk", ".voip-ptt", {"aps": {}, "activeSpeaker": "Grace"}, "push-to-talk", ["Nothing is displayed", "Grace"]),
    ("widgets", ".push-type.widgets", {"aps": {"content-changed": True}}, "widgets", ["reloads the app's widgets"]),
    ("controls", ".push-type.controls", {"aps": {}}, "controls", ["content-changed is not true"]),
    ("liveactivity", ".push-type.liveactivity", {"aps": {"timestamp": NOW, "event": "start", "attributes-type": "Ride",
     "attributes": {"id": 7}, "content-state": {"eta": "14:05"}, "alert": {"title": "Off", "body": "we go"}}}, "live activity: start",
     ["in its Live Activity", "Ride", "14:05"]),
    ("liveactivity", ".push-type.liveactivity", {"aps": {"timestamp": NOW, "event": "update", "content-state": {"eta": "14:09"},
     "stale-date": NOW + 900}}, "live activity: update", ["14:09", "Stale from", "changes silently"]),
    ("liveactivity", ".push-type.liveactivity", {"aps": {"timestamp": NOW, "event": "end", "dismissal-date": NOW + 600}},
     "live activity: end", ["Dismissal"]),
    ("liveactivity", ".push-type.liveactivity", {"aps": {"event": "start"}}, "live activity: start",
     ["Nothing is displayed", "timestamp is missing"]),
    ("liveactivity", ".push-type.liveactivity", {"aps": {"timestamp": NOW * 1000, "event": "update", "content-state": {}}},
     "live activity: update", ["Nothing is displayed", "timestamp is not in seconds"]),
    ("liveactivity", ".push-type.liveactivity", {"aps": {"timestamp": NOW - 40_000, "event": "update", "content-state": {}}},
     "live activity: update", ["Nothing is displayed", "more than 8 hours ago"]),
    ("liveactivity", ".push-type.liveactivity", {"aps": {"timestamp": NOW, "event": "start", "attributes-type": "Ride", "attributes": {},
     "content-state": {}, "alert": {}}}, "live activity: start", ["Nothing is displayed", "neither title nor body"]),
    ("complication", ".complication", {"aps": {}}, "complication", ["Nothing is displayed", "complication"]),
    ("fileprovider", ".pushkit.fileprovider", {"aps": {}}, "file provider", ["Nothing is displayed"]),
    ("location", ".location-query", {"aps": {}}, "location query", ["Nothing is displayed", "the device's location"]),
]


@pytest.mark.parametrize(("type", "suffix", "payload", "row", "words"), KINDS, ids=[f"{kind[0]}-{i}" for i, kind in enumerate(KINDS)])
def test_each_kind_of_push_has_a_preview(server, kept_view, provider, device, type, suffix, payload, row, words):
    response = provider(server).push(device, payload, topic="com.example.app" + suffix, type=type)
    assert response.status_code == 200, response.text
    seq = server.record(device)["seq"]
    kept_view.visit(f"/?q=token:{device}&push={seq}")
    panel = kept_view.page.locator(f".tab-panel[data-seq='{seq}']")
    panel.locator(".statement").wait_for()
    assert row in kept_view.page.locator(f".row[data-seq='{seq}'] .row-title").inner_text()
    text = panel.inner_text()
    for word in words:
        assert word in text, f"{word!r} is missing in:\n{text}"


def test_a_live_activity_has_its_states_over_time(server, kept_view, provider, device):
    one = provider(server)
    for event, state in (("start", {"eta": "14:05", "gate": "B"}), ("update", {"eta": "14:09", "gate": "B"}), ("end", {"eta": "14:09", "gate": "C"})):
        start = {"attributes-type": "Ride", "attributes": {}, "alert": {"title": "Off", "body": "we go"}} if event == "start" else {}
        one.push(device, {"aps": {"timestamp": NOW, "event": event, "content-state": state, **start}}, topic="com.example.app.push-type.liveactivity", type="liveactivity")
    first, second, _ = [push["seq"] for push in server.pushes(device_token=device)]
    kept_view.visit(f"/?q=token:{device}&push={second}")
    states = kept_view.page.locator(f".tab-panel[data-seq='{second}'] .state-list li")
    states.nth(2).wait_for()
    texts = [" ".join(text.split()) for text in states.all_inner_texts()]
    # Of each state, what has changed.
    assert [text.split(" ", 1)[1] for text in texts] == ["start eta 14:05, gate B", "update eta 14:09", "end gate C"]
    assert states.nth(1).get_attribute("aria-current") == "true"
    states.nth(0).get_by_role("button").click()
    kept_view.page.locator(f".tab-panel[data-seq='{first}'] .state-list li").nth(2).wait_for()


def state_texts(view, seq, number):
    """The texts of the states over time of an open push, without their times."""
    states = view.page.locator(f".tab-panel[data-seq='{seq}'] .state-list li")
    states.nth(number - 1).wait_for()
    return [" ".join(text.split()).split(" ", 1)[1] for text in states.all_inner_texts()]


ACTIVITY = {"topic": "com.example.app.push-type.liveactivity", "type": "liveactivity"}


def start_activity(one, token, eta):
    one.push(token, {"aps": {"timestamp": int(time.time()), "event": "start", "attributes-type": "Ride", "attributes": {}, "content-state": {"eta": eta},
                             "alert": {"title": "Off", "body": "we go"}}}, **ACTIVITY)


def update_activity(one, token, eta):
    one.push(token, {"aps": {"timestamp": int(time.time()), "event": "update", "content-state": {"eta": eta}}}, **ACTIVITY)


def test_the_states_are_those_of_one_activity(start, open_page, provider):
    """Of two activities that one push-to-start token has started."""
    server, token = start(), "5ee7" * 40
    server.api("PUT", "/fixtures", {"devices": [{"id": "anna", "apps": [{"bundle_id": "com.example.app", "tokens": {"liveactivity_start": token}}]}]})
    one = provider(server)
    start_activity(one, token, "1")
    start_activity(one, token, "2")
    first, second = server.api("GET", "/devices/anna")["activities"]
    update_activity(one, first["token"], "11")
    update_activity(one, second["token"], "22")
    update_activity(one, second["token"], "222")
    view = open_page(server, "/?push=1").live()
    expected = [["start eta 1", "update eta 11"], ["start eta 2", "update eta 22", "update eta 222"]]
    for seq, texts in ((1, expected[0]), (3, expected[0]), (2, expected[1]), (4, expected[1]), (5, expected[1])):
        view.visit(f"/?push={seq}")
        assert state_texts(view, seq, len(texts)) == texts, seq


def test_each_start_begins_another_activity_of_a_token_that_is_not_registered(server, kept_view, provider, device):
    one = provider(server)
    start_activity(one, device, "1")
    update_activity(one, device, "11")
    start_activity(one, device, "2")
    update_activity(one, device, "22")
    seqs = [push["seq"] for push in server.pushes(device_token=device)]
    for seq, texts in zip(seqs, [["start eta 1", "update eta 11"]] * 2 + [["start eta 2", "update eta 22"]] * 2):
        kept_view.visit(f"/?q=token:{device}&push={seq}")
        assert state_texts(kept_view, seq, 2) == texts
    headings = kept_view.page.locator(".detail :is(h2, h3, h4)").evaluate_all("(all) => all.map((one) => Number(one.tagName[1]))")
    assert all(after - before <= 1 for before, after in zip(headings, headings[1:])), headings


def test_the_time_of_another_day_has_its_date(start, open_page, provider, device):
    server = start()
    provider(server).alert(device, "Early")
    server.api("POST", "/clock/advance", {"by": "72h"})
    provider(server).alert(device, "Late")
    view = open_page(server, "/?push=1").live()
    received = view.page.get_by_role("list", name="Delivery").locator("li", has_text="received")
    received.get_by_text(re.compile(r"^\d+ \w{3,4}( \d{4})? \d\d:\d\d:\d\d\.\d{3}$")).wait_for()
    assert re.search(r"\d+ \w{3,4}( \d{4})? \d\d:\d\d", view.row("Early").get_attribute("aria-label"))
    view.visit("/?push=2")
    received.get_by_text(re.compile(r"^\d\d:\d\d:\d\d\.\d{3}$")).wait_for()


def test_device_management_is_shown(server, open_page, device):
    """APNs accepts MDM pushes only with certificates for MDM topics; the preview does not depend on the response."""
    with httpx.Client(http2=True, verify=ssl.create_default_context(cafile=server.ca), base_url=server.url) as client:
        client.post(f"/3/device/{device}", headers={"authorization": server.bearer, "apns-topic": "com.apple.mgmt.External.1",
                    "apns-push-type": "mdm"}, content='{"mdm":"MAGIC-1"}')
    view = open_page(server, f"/?push={server.record(device)['seq']}")
    view.page.locator(".statement").wait_for()
    text = view.page.locator(".tab-panel").inner_text()
    assert "device management" in text and "MAGIC-1" in text and "Nothing is displayed" in text


def test_rejected_pushes_have_no_preview_statement(server, open_page, provider, device):
    provider(server).push(device, {"aps": {"alert": "Hello"}}, topic="not a topic")
    view = open_page(server, f"/?push={server.record(device)['seq']}")
    view.page.locator(".statement").wait_for()
    assert "APNs did not accept this push (400 BadTopic)" in view.page.locator(".statement").inner_text()
    view.page.get_by_role("tab", name="Verdict").click()
    found = server.api("GET", f"/pushes/{server.record(device)['seq']}/explain")
    view.page.locator(".verdict-advice", has_text=found["advice"]).wait_for()
    assert found["text"] in view.page.locator(".verdict-story").inner_text()
    assert "400 BadTopic" in view.page.locator(".path").inner_text()
    assert view.page.locator(".checks .no-line").count() == 1


def test_the_six_tabs(server, open_page, provider, device):
    provider(server).push(device, {"aps": {"alert": "Hello", "colour": 1}, "n": 12345678901234567890}, apns_collapse_id="same")
    view = open_page(server, f"/?push={server.record(device)['seq']}")
    tabs = view.page.get_by_role("tab")
    tabs.first.wait_for()
    assert tabs.all_inner_texts() == ["Preview", "Payload", "Headers", "Auth", "Verdict", "Timeline"]
    panel = view.page.locator(".tab-panel")

    view.page.get_by_role("tab", name="Payload").click()
    panel.get_by_text("12345678901234567890").wait_for()
    assert panel.locator(".json-line", has_text="colour").get_by_text("not a key of aps").count() == 1
    panel.locator(".json-line", has_text="alert").click()
    assert panel.locator(".pointer code").inner_text() == "/aps/alert"
    assert "tab=payload" in view.url

    view.page.get_by_role("tab", name="Headers").click()
    row = panel.locator("tbody tr", has_text="apns-collapse-id")
    assert "same" in row.inner_text() and "valid" in row.inner_text()

    view.page.get_by_role("tab", name="Auth").click()
    text = panel.inner_text()
    assert "valid" in text and "MOCKKEY001" in text and "MOCKTEAM01" in text and '"alg": "ES256"' in text
    signature = server.bearer.rsplit(".", 1)[1]
    assert signature not in view.page.content()

    view.page.get_by_role("tab", name="Verdict").click()
    panel.locator(".verdict-advice").wait_for()
    assert panel.locator(".checks .yes-line").count() > 20

    view.page.get_by_role("tab", name="Timeline").click()
    panel.locator(".lane-bar[aria-current]").wait_for()
    assert "SETTINGS" in panel.inner_text()


def test_search_uses_the_query_language_and_is_part_of_the_address(server, open_page, provider, device):
    one = provider(server)
    one.alert(device, "Needle")
    one.push(device, {"aps": {"alert": "Hay"}}, topic="")
    view = open_page(server)
    view.page.get_by_label("Search pushes").fill(f"token:{device} status:400")
    view.row("Hay").wait_for()
    view.until("() => document.querySelectorAll('.row').length === 1")
    assert "status%3A400" in view.url
    view.page.reload()
    view.row("Hay").wait_for()
    assert view.page.get_by_label("Search pushes").input_value() == f"token:{device} status:400"
    view.page.get_by_label("Search pushes").fill(f"token:{device} text:needle")
    view.row("Needle").wait_for()
    view.page.get_by_label("Search pushes").fill(f"token:{device} status:429")
    view.page.get_by_text("No pushes match.").wait_for()


def test_a_query_that_cannot_be_read_is_explained(server, open_page):
    view = open_page(server)
    view.page.get_by_label("Search pushes").fill("stauts:400")
    problem = view.page.locator(".search-problem")
    problem.wait_for()
    view.until("() => document.querySelector('.search-problem')?.textContent.includes('status')")
    view.forget_complaint()  # The browser itself logs the 400.


def test_groups_are_searches(start, open_page, provider, device):
    server = start()
    one = provider(server)
    one.alert(device, "Good")
    one.push(device, {"aps": {"alert": "Bad"}}, topic="")
    view = open_page(server)
    groups = view.page.get_by_role("navigation", name="Groups")
    view.until("() => document.querySelector('[data-group=rejected] .group-count')?.textContent === '1'")
    groups.get_by_role("button", name="Rejected").click()
    view.until("() => document.querySelectorAll('.row').length === 1")
    assert view.row("Bad").count() == 1
    assert groups.get_by_role("button", name="Rejected").get_attribute("aria-current") == "true"
    groups.get_by_role("button", name="All").click()
    view.until("() => document.querySelectorAll('.row').length === 2")
    groups.get_by_role("button", name="com.example.app").click()
    view.until("() => document.querySelectorAll('.row').length === 1")
    assert view.row("Good").count() == 1


def test_keys(start, open_page, provider, device):
    server = start()
    one = provider(server)
    for title in ("First", "Second", "Third"):
        one.alert(device, title)
    view = open_page(server, permissions=["clipboard-read", "clipboard-write"])
    keys = view.page.keyboard
    view.row("Third").wait_for()
    chosen = view.page.locator(".row[aria-selected=true] .row-title")
    keys.press("j")
    assert chosen.inner_text() == "Third"
    keys.press("j")
    keys.press("j")
    assert chosen.inner_text() == "First"
    keys.press("j")
    assert chosen.inner_text() == "First", "the list ends"
    keys.press("k")
    assert chosen.inner_text() == "Second"
    keys.press("Enter")
    view.page.locator(".detail-title", has_text="Second").wait_for()
    for key, tab in zip("123456", ["Preview", "Payload", "Headers", "Auth", "Verdict", "Timeline"]):
        keys.press(key)
        assert view.page.get_by_role("tab", name=tab).get_attribute("aria-selected") == "true"
    keys.press("y")
    view.page.locator(".toast", has_text="apns-id").wait_for()
    assert view.page.evaluate("() => navigator.clipboard.readText()") == server.pushes()[1]["apns"]["id"]
    keys.press("Escape")
    view.page.locator(".detail .overview").wait_for()
    keys.press("/")
    assert view.page.evaluate("() => document.activeElement.id") == "search"
    keys.type("j.t")
    assert view.page.get_by_label("Search pushes").input_value() == "j.t", "keys are text where text is typed"
    view.page.get_by_label("Search pushes").fill("")
    keys.press("Escape")
    keys.press(".")
    view.page.locator(".bar-live.is-paused").wait_for()
    keys.press(".")
    keys.press("t")
    assert view.page.evaluate("() => document.documentElement.dataset.theme") == "light"
    keys.press("t")
    assert view.page.evaluate("() => document.documentElement.dataset.theme") == "dark"
    dark = view.page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    view.page.reload()
    assert view.page.evaluate("() => getComputedStyle(document.body).backgroundColor") == dark, "the theme is kept"
    keys.press("?")
    sheet = view.page.get_by_role("dialog")
    assert "copy the apns-id" in sheet.inner_text()
    keys.press("Escape")
    sheet.wait_for(state="detached")


def test_keys_walk_through_attempts(start, open_page, provider, device):
    server = start("--profile", "flaky-503?rate=1&streak=2")
    one = provider(server)
    assert [one.alert(device, "Again") for _ in range(3)] == [503, 503, 200]
    view = open_page(server, "/?push=3")
    strip = view.page.locator(".attempts .attempt")
    strip.nth(2).wait_for()
    assert [text.strip() for text in strip.all_inner_texts()] == ["503", "503", "200"]
    view.page.keyboard.press("[")
    view.page.locator(".detail-line", has_text="#2").wait_for()
    view.page.keyboard.press("]")
    view.page.locator(".detail-line", has_text="#3").wait_for()
    view.page.locator("[data-group='view faults']").click()
    for key in "[ye":
        view.page.keyboard.press(key)
    assert view.url.endswith("?view=faults") and view.page.locator(".toast, dialog").count() == 0, "no push is shown"
    view.page.go_back()
    view.page.get_by_role("button", name="Group retries").click()
    view.until("() => document.querySelectorAll('.row').length === 1")
    view.page.locator(".row .chip", has_text="3/3").wait_for()


def test_the_size_is_that_of_the_received_bytes(server, open_page, provider, device):
    text = "ä" * 1900
    body = json.dumps({"aps": {"alert": text}}, ensure_ascii=False)
    provider(server).push(device, body)
    view = open_page(server, f"/?push={server.record(device)['seq']}")
    gauge = view.page.locator(".gauge")
    gauge.wait_for()
    assert gauge.get_by_role("meter").get_attribute("aria-valuenow") == str(len(body.encode()))
    assert "is-near" in gauge.get_attribute("class")
    other = secrets.token_hex(32)
    provider(server).push(other, {"aps": {"alert": "x" * 5000}})
    view.page.goto(f"{view.base}/?push={server.record(other)['seq']}")
    view.page.locator(".gauge.is-over").wait_for()
    assert re.search(r"too many", view.page.locator(".gauge").inner_text())


def test_copies_of_a_push(server, open_page, provider, device):
    provider(server).alert(device, "To take away")
    view = open_page(server, f"/?push={server.record(device)['seq']}", permissions=["clipboard-read", "clipboard-write"])
    for name, expected in (("curl", "curl "), (".apns", "Simulator Target Bundle"), ("JSON", '"push_key"')):
        view.page.get_by_role("button", name=name, exact=True).click()
        view.until("(text) => navigator.clipboard.readText().then((copied) => copied.includes(text))", expected)


def test_reduced_motion_is_honored(server, open_page):
    view = open_page(server, reduced_motion="reduce").live()
    assert view.page.evaluate("() => document.getAnimations().length") == 0


@pytest.mark.parametrize("width", [360, 768, 1024])
def test_nothing_is_wider_than_the_screen(server, open_page, provider, device, width):
    provider(server).alert(device, "W" * 300)
    seq = server.record(device)["seq"]
    view = open_page(server, f"/?q=token:{device}", width=width, height=740)
    view.page.locator(".row .row-title").wait_for()
    for path, drawn in (("/", ".row .row-title"), (f"/?push={seq}", ".statement"), (f"/?push={seq}&tab=verdict", ".verdict-advice"),
                        (f"/?push={seq}&tab=headers", ".tab-panel tbody tr"), ("/?view=faults", ".clock"),
                        ("/?view=devices", ".device"), ("/?view=connections", ".lane-bar"), ("/?view=connect", ".settings")):
        view.visit(path)
        view.page.locator(drawn).first.wait_for()
        assert view.page.evaluate("() => document.documentElement.scrollWidth") <= width, path
        assert view.page.evaluate("() => document.querySelector('main').scrollWidth <= document.querySelector('main').clientWidth"), path


def test_on_a_narrow_screen_a_push_covers_the_list(server, open_page, provider, device):
    provider(server).alert(device, "Narrow")
    view = open_page(server, f"/?q=token:{device}", width=360, height=740)
    view.row("Narrow").click()
    view.page.locator(".detail-title", has_text="Narrow").wait_for()
    assert not view.page.locator(".list").is_visible()
    view.page.get_by_role("button", name="Close the push").click()
    view.page.locator(".list").wait_for()
    view.page.go_back()
    view.page.locator(".detail-title", has_text="Narrow").wait_for()


def test_programs_get_text_and_browsers_the_page(server):
    page = server.request("GET", "/", headers={"accept": "text/html,application/xhtml+xml"})
    assert page.headers["content-type"].startswith("text/html") and page.headers["vary"] == "accept"
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    text = server.request("GET", "/", headers={"accept": "*/*"})
    assert text.headers["content-type"] == "text/plain; charset=utf-8" and text.headers["vary"] is None
    for type in ("TEXT/HTML", "text/html,application/xhtml+xml,*/*;q=0.8"):
        page = server.request("GET", "/?q=status:400", headers={"accept": type})
        assert page.headers["content-type"] == "text/html; charset=utf-8", type
    programs = server.request("GET", "/", headers={"accept": "application/json"})
    assert programs.headers["content-type"].startswith("text/plain")
    script = server.request("GET", "/page/modules/main.js")
    assert script.headers["content-type"].startswith("text/javascript")


def test_findings_are_shown_with_their_evidence(start, open_page, provider, device):
    server = start()
    provider(server).push(device, {"aps": {"alert": "Untyped"}}, type=None)
    found = server.api("GET", "/pushes/1/explain")["findings"]
    assert [finding["finding"] for finding in found] == ["missing-push-type"]
    view = open_page(server, "/?push=1&tab=verdict")
    view.page.locator(".findings", has_text=found[0]["summary"]).wait_for()
    assert found[0]["advice"] in view.page.locator(".findings").inner_text()
    view.page.locator(".row .chip", has_text="1 finding").wait_for()
    view.until("() => document.querySelector('[data-group=findings] .group-count')?.textContent === '1'")
    view.page.get_by_role("button", name="Findings").first.click()
    view.until("() => new URLSearchParams(location.search).get('q') === 'finding:*'")
    assert view.row("Untyped").count() == 1
