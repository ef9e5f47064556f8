"""The connections and the devices of the web UI."""

import re
import secrets
import threading
import time

import pytest
from playwright.sync_api import expect

from support import stores
from support.selection import some


def boxes(view, selector):
    return view.page.eval_on_selector_all(selector, "all => all.map((one) => { const box = one.getBoundingClientRect(); return [box.left, box.right, box.top]; })")


# Connections

def test_bars_of_a_sequential_client_share_neither_pixels_nor_rows(start, open_page, provider, device):
    server = start()
    one = provider(server)
    for number in range(60):
        one.alert(device, f"Number {number}")
    view = open_page(server, "/?view=connections").live()
    view.page.locator(".lane-bar").first.wait_for()
    bars = sorted(boxes(view, ".track-line .lane-bar"))
    assert len({top for _, _, top in bars}) == 1, "one push after the other needs one row"
    assert all(left >= end for (_, end, _), (left, _, _) in zip(bars, bars[1:])), "no bar is on another one"
    seq = server.pushes(device_token=device, order="desc", limit=1)[0]["seq"]
    view = open_page(server, f"/?push={seq}&tab=timeline").live()
    view.page.locator(".lane-bar").first.wait_for()
    view.page.get_by_role("button", name="All", exact=True).click()
    # A bar of several pushes names their number.
    view.until("() => [...document.querySelectorAll('.lane-bar')].reduce((sum, one) => sum + (one.classList.contains('is-many') ? Number.parseInt(one.title) : 1), 0) === 60")
    bars = sorted(boxes(view, ".lane-bar"))
    assert len({top for _, _, top in bars}) == 1
    assert all(left >= end for (_, end, _), (left, _, _) in zip(bars, bars[1:])), "no bar is on another one"


def test_all_pushes_of_a_connection_are_drawn(start, open_page, provider, device):
    """More pushes than one request returns: columns of counts, and bars after zooming in."""
    server = start()
    assert set(stores.load(server, 1100, device=device).values()) == {200}
    provider(server).alert(device, "Newest")
    view = open_page(server, "/?view=connections").live()
    row = view.page.get_by_role("region", name="Connection c1")
    row.get_by_role("img", name=re.compile("1\\W?100 pushes")).wait_for()
    axis = view.page.locator(".tracks-axis")
    for _ in range(6):
        row.and_(view.page.locator("[aria-busy=false]")).wait_for()
        # In one step, because a drawing of columns may be replaced by one of bars.
        is_bar, left = row.locator(".lane-bar, .track-columns path").first.evaluate(
            "(shape) => [shape.matches('.lane-bar'), shape.getBoundingClientRect().x]")
        if is_bar:
            break
        # Zooms to where the first column of pushes is.
        shown, y = view.page.locator(".tracks-range").inner_text(), axis.bounding_box()["y"] + 5
        view.page.mouse.move(left - 10, y)
        view.page.mouse.down()
        view.page.mouse.move(left + 10, y)
        view.page.mouse.up()
        expect(view.page.locator(".tracks-range")).not_to_have_text(shown)
    row.locator(".lane-bar").first.wait_for()
    view.page.get_by_role("button", name="All", exact=True).click()
    row.get_by_role("img", name=re.compile("1\\W?100 pushes")).wait_for()


def test_a_group_of_pushes_is_opened_by_zooming(start, open_page, provider, device):
    server = start()
    one = provider(server)
    one.alert(device, "First")
    server.api("POST", "/clock/advance", {"by": "5m"})
    for _ in range(5):
        one.alert(device, "Together")
        time.sleep(0.02)
    view = open_page(server, "/?view=connections").live()
    view.page.locator(".lane-bar.is-many").wait_for()
    assert "5 pushes" in view.page.locator(".lane-bar.is-many").get_attribute("aria-label")
    view.page.locator(".lane-bar.is-many").click()
    view.until("() => document.querySelectorAll('.lane-bar').length === 5")
    assert "zoom" in view.page.locator(".tracks-range").inner_text()


def test_zooming_keeps_what_happened_in_view(start, open_page, provider, device):
    """Pushes at both ends of a long time, and one that began long before the visible time and still runs."""
    server = start()
    one, other = provider(server), provider(server)
    one.alert(device, "First")
    server.api("POST", "/rules", {"name": "slow", "when": {"q": "text:held"}, "do": {"hang": {"for": "1m"}}})
    held = threading.Thread(target=lambda: pytest.raises(Exception, other.alert, device, "held"), daemon=True)
    held.start()
    server.api("GET", "/pushes/wait", q="is:pending", timeout="10s")
    server.api("POST", "/clock/advance", {"by": "2m"})
    one.alert(device, "Last")
    view = open_page(server, "/?view=connections").live()
    lanes = "() => [...document.querySelectorAll('.track')].filter((one) => one.getAttribute('aria-busy') === 'false').map((one) => one.querySelectorAll('.lane-bar').length).sort().join()"
    view.until(f"() => ({lanes})() === '1,2'")
    for step in range(8):
        view.page.get_by_role("button", name="Zoom in").click()
        view.until("(zoom) => document.querySelector('.tracks-range').textContent.startsWith(zoom)", str(2 ** (step + 1))[:1])
        view.until(f"() => ['0,1', '1,1', '1,2'].includes(({lanes})())")
    # The middle is between the pushes of c1, and c2 is busy.
    view.page.get_by_role("button", name="All", exact=True).click()
    box = view.page.locator(".tracks-axis").bounding_box()
    view.page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 5)
    view.page.mouse.down()
    view.page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 5)
    view.page.mouse.up()
    view.page.get_by_text("no pushes in this time").wait_for()
    view.until(f"() => ({lanes})() === '0,1'")
    server.api("POST", "/connections/close", {"all": True})
    held.join()


def test_frames_have_directions_and_say_what_was_recorded(start, open_page, provider, device):
    server = start()
    one = provider(server)
    one.alert(device, "Fine")
    one.push(device, {"aps": {"alert": "Bad"}}, topic="")
    server.api("POST", "/connections/goaway", {"all": True})
    view = open_page(server, "/?view=connections").live()
    view.page.locator(".track-head").first.click()
    table = view.page.get_by_role("region", name="Sequence of frames")
    table.wait_for()
    view.until("() => document.querySelector('.sequence')?.textContent.includes('GOAWAY')")
    rows = [row.split("\t") for row in table.locator("tbody tr").all_inner_texts()]
    frames = [(row[1].strip() or row[3].strip(), row[2].strip(), row[6].strip()) for row in rows]
    assert ("SETTINGS", "←", "recorded") in frames and ("GOAWAY", "←", "recorded") in frames
    assert frames.count(("HEADERS", "→", "derived")) == 2 and frames.count(("DATA", "→", "derived")) == 2
    assert frames.count(("HEADERS", "←", "derived")) == 2 and frames.count(("DATA", "←", "derived")) == 1
    assert "MissingTopic" in table.inner_text() and "Not recorded" in view.page.locator(".frames").inner_text()


# Devices

def fixtures(number, **more):
    return {"devices": [{"id": f"phone-{index}", "apps": [{"bundle_id": "com.example.app", "tokens": {"alert": f"{index:08x}" * 8}}], **more} for index in range(number)]}


def test_all_registered_devices_are_found_page_by_page(start, open_page):
    server = start()
    server.api("PUT", "/fixtures", fixtures(1300))
    view = open_page(server, "/?view=devices").live()
    view.page.get_by_text("1 to 50 of 1\u202f300 device tokens").wait_for()
    # Twice before the next page is loaded.
    view.page.get_by_role("button", name="Next").evaluate("(one) => { one.click(); one.click(); }")
    view.page.get_by_role("button", name="phone-50", exact=True).wait_for()
    view.page.get_by_role("button", name="Previous").click()
    view.page.get_by_role("button", name="phone-0", exact=True).wait_for()
    view.page.get_by_label("Search", exact=True).fill("phone-1299")
    view.page.get_by_role("button", name="phone-1299", exact=True).wait_for()
    assert view.page.locator(".device-table tbody tr").count() == 1
    view.page.get_by_label("Search", exact=True).fill("offline")
    view.page.get_by_text("No registered device token matches.").wait_for()
    # The rows of one app on one device differ in what is visible, also beside the device and on a phone.
    server.api("PUT", "/fixtures", {"devices": [{"id": "both", "apps": [{"bundle_id": "com.example.app", "tokens": {"alert": ["5ee4" * 16, "5ee4" * 15 + "5ee5"], "voip": "5ee6" * 16}}]}]})
    view.page.get_by_label("Search", exact=True).fill("both")
    view.page.get_by_role("button", name="both", exact=True).first.click()
    for width in (1280, 360):
        view.page.set_viewport_size({"width": width, "height": 900})
        rows = view.page.locator(".device-table tbody tr").all_inner_texts()
        assert len(set(rows)) == 3 and sum("voip" in row for row in rows) == 1
    table = view.page.locator(".device-table")
    assert table.evaluate("(one) => one.scrollWidth - one.clientWidth") <= 0


def test_devices_keep_order_and_focus_while_pushes_arrive(start, open_page, provider):
    server = start()
    server.api("PUT", "/fixtures", fixtures(5))
    one = provider(server)
    view = open_page(server, "/?view=devices").live()
    view.page.get_by_role("button", name="phone-3", exact=True).focus()
    for index in (4, 3, 0):
        assert one.alert(f"{index:08x}" * 8, "New") == 200
        view.until("(index) => [...document.querySelectorAll('.device-table tbody tr')][index]?.lastChild.textContent === '1'", index)
    assert [text.split()[0] for text in view.page.locator(".device-table tbody tr").all_inner_texts()] == [f"phone-{index}" for index in range(5)]
    assert view.page.evaluate("() => document.activeElement.textContent") == "phone-3"


@pytest.mark.parametrize("name, texts", some([("devices", ["1", "3"]), ("connections", ["1 push", "3 pushes"]), ("findings", ["1 push", "3 pushes"])], 2))
def test_a_push_during_a_load_is_shown(name, texts, start, open_page, provider):
    """The response that is on its way does not know the push; another load has to follow."""
    server = start()
    server.api("PUT", "/fixtures", fixtures(1))
    one = provider(server)

    def push():
        payload = {"aps": {"alert": "New"}}
        # A finding: a push with an alert that says it is a background push.
        assert one.push(f"{0:08x}" * 8, payload, type="background" if name == "findings" else "alert", **{"apns-priority": "5"}).status_code == 200

    push()
    view = open_page(server, f"/?view={name}").live()
    region = view.page.get_by_role("region", name=name.capitalize(), exact=True)
    region.get_by_text(texts[0], exact=True).first.wait_for()
    held = []

    def hold(route):
        response = route.fetch()
        if not held:
            held.append(route.request.url)
            push()
            time.sleep(1.6)  # longer than the views wait between two loads
        route.fulfill(response=response)

    view.page.route(re.compile(f"/api/v1/{name}([?]|$)"), hold)
    push()
    region.get_by_text(texts[1], exact=True).first.wait_for()
    assert held


def test_recent_tokens_keep_order_and_focus_while_pushes_arrive(start, open_page, provider):
    server = start()
    tokens = [secrets.token_hex(32) for _ in range(4)]
    one = provider(server)
    for token in tokens:
        one.alert(token, "Old")
    view = open_page(server, "/?view=devices").live()
    cards = view.page.locator(".device h3")
    view.until("() => document.querySelectorAll('.device').length === 4")
    before = cards.all_inner_texts()
    view.page.locator(".device").nth(1).get_by_role("button", name="Uninstall").focus()
    one.alert(tokens[0], "New")
    one.alert(secrets.token_hex(32), "Another")
    view.until("() => document.querySelectorAll('.device').length === 5")
    assert cards.all_inner_texts()[:4] == before
    assert view.page.evaluate("() => document.activeElement.textContent") == "Uninstall"
    assert view.page.evaluate("() => [...document.querySelectorAll('.device')].indexOf(document.activeElement.closest('.device'))") == 1


def test_a_device_changes_its_state(start, open_page, provider):
    server = start()
    server.api("PUT", "/fixtures", fixtures(1))
    token = f"{0:08x}" * 8
    one = provider(server)
    view = open_page(server, "/?view=devices").live()
    view.page.get_by_role("button", name="phone-0", exact=True).click()
    detail = view.page.locator(".device-detail")
    for label, state in (("Offline", "offline"), ("Low power", "power_restricted"), ("Online", "online")):
        detail.get_by_role("button", name=label, exact=True).click()
        detail.get_by_role("button", name=label, exact=True, pressed=True).wait_for()
        assert server.api("GET", "/devices/phone-0")["state"] == state
    detail.get_by_role("button", name="Disable notifications").click()
    detail.get_by_role("button", name="Enable notifications").click()
    detail.get_by_role("button", name="Disable notifications").wait_for()
    detail.get_by_role("button", name="Uninstall").click()
    view.page.get_by_role("dialog").get_by_role("button", name="Uninstall the app").click()
    detail.locator(".chip.is-removed").wait_for()
    one.alert(token, "Notices that it was removed")
    assert one.alert(token, "Gone") == 410
    view.complaints.clear()
    detail.get_by_role("button", name="Reinstall").click()
    detail.locator(".chip.is-enabled").wait_for()
    new = server.api("GET", "/devices/phone-0")["apps"][0]["tokens"]["alert"]
    assert new != token


def test_a_device_shows_collapsing_badges_and_its_live_activity(start, open_page, provider):
    server = start()
    server.api("PUT", "/fixtures", {"devices": [{"id": "anna", "apps": [
        {"bundle_id": "com.example.app", "tokens": {"alert": "aa11" * 16, "liveactivity": "bb11" * 40}}]}]})
    one = provider(server)
    one.push("aa11" * 16, {"aps": {"alert": "First", "badge": 2}}, apns_collapse_id="same")
    one.push("aa11" * 16, {"aps": {"alert": "Second", "badge": 5}}, apns_collapse_id="same")
    activity = {"topic": "com.example.app.push-type.liveactivity", "type": "liveactivity"}
    one.push("bb11" * 40, {"aps": {"timestamp": int(time.time()), "event": "update", "content-state": {"eta": "14:05"}}}, **activity)
    view = open_page(server, "/?view=devices").live()
    view.page.get_by_role("button", name="anna", exact=True).first.click()
    phone = view.page.locator(".device-detail .phone")
    phone.get_by_text("Second").wait_for()
    assert "First" not in phone.inner_text() and "14:05" in phone.inner_text()
    assert phone.locator(".badge-list .phone-badge").inner_text() == "5"
    row = view.page.get_by_role("region", name="Received pushes").get_by_role("row", name="Second")
    assert "2 → 5" in row.inner_text() and "#1" in row.inner_text()
    one.push("bb11" * 40, {"aps": {"timestamp": int(time.time()), "event": "update", "content-state": {"eta": "14:20"}}}, **activity)
    phone.get_by_text("14:20").wait_for()
    one.push("bb11" * 40, {"aps": {"timestamp": int(time.time()), "event": "end", "content-state": {"eta": "14:30"}}}, **activity)
    view.until("() => !document.querySelector('.device-detail .activity-card')")


def test_channels_are_created_and_removed(start, open_page):
    server = start()
    view = open_page(server, "/?view=devices").live()
    view.page.get_by_role("button", name="Broadcast channels").click()
    view.page.get_by_text("No broadcast channels.").wait_for()
    view.page.get_by_label("Bundle id").fill("com.example.app")
    view.page.get_by_role("button", name="Create a channel").click()
    view.page.get_by_role("button", name="Remove the channel").wait_for()
    channels = server.api("GET", "/channels")["items"]
    assert len(channels) == 1 and channels[0]["bundle_id"] == "com.example.app"
    view.page.get_by_role("button", name="Remove the channel").click()
    view.page.get_by_role("dialog").get_by_role("button", name="Remove the channel").click()
    view.page.get_by_text("No broadcast channels.").wait_for()


def test_the_last_minute_of_a_long_time_line_has_the_newest_push(start, open_page, provider, device):
    server = start()
    one = provider(server)
    one.alert(device, "First")
    server.api("POST", "/clock/advance", {"by": "300m"})
    one.alert(device, "Last")
    view = open_page(server, "/?view=connections").live()
    view.page.locator(".lane-bar").first.wait_for()
    view.page.get_by_role("button", name="Last minute").click()
    view.page.locator(".tracks-range", has_text="zoom").wait_for()
    view.page.locator(".track[aria-busy=true]").wait_for(state="detached")
    view.page.locator(".lane-bar[aria-label^='#2,']").wait_for()
    assert view.page.get_by_text("no pushes in this time").count() == 0


def test_a_connection_whose_pushes_were_removed_says_so(start, open_page, provider, device):
    server = start()
    one, other = provider(server), provider(server)
    for number in range(3):
        one.alert(device, f"Number {number}")
    server.api("POST", "/reset", {"inbox": True})
    other.alert(device, "After the reset")
    view = open_page(server, "/?view=connections").live()
    row = view.page.get_by_role("region", name="Connection c1")
    row.get_by_text("its pushes were removed from the inbox").wait_for()
    assert "3 pushes" in row.inner_text()
    view.page.get_by_role("region", name="Connection c2").locator(".lane-bar").wait_for()
