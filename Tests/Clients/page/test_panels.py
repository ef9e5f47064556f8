"""The overview, the findings, the connections, the devices and the faults of the web UI."""

import re
import secrets
import threading
import time

import pytest
from playwright.sync_api import expect

from support import stores
from support.selection import some

HOSTILE = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>\u202e\u0000"


@pytest.fixture
def start(binary, certs):
    """`start(*flags)` starts a server, which is stopped after the test."""
    from support.server import Server

    servers = []

    def begin(*flags):
        servers.append(Server(binary, certs, *flags))
        return servers[-1]

    yield begin
    for server in servers:
        assert server.stop() == 0


def boxes(view, selector):
    return view.page.eval_on_selector_all(selector, "all => all.map((one) => { const box = one.getBoundingClientRect(); return [box.left, box.right, box.top]; })")


# Loading

def test_the_page_loads_few_files(server, open_page):
    view = open_page(server).live()
    view.until("() => performance.getEntriesByType('resource').some((one) => one.name.includes('/page/later.js'))")
    files = [name for name in view.page.evaluate("() => performance.getEntriesByType('resource').map((one) => new URL(one.name).pathname)")
             if name.startswith("/page/") and not name.endswith(".svg")]
    # The first rows need no more than these; what follows is loaded after them.
    assert sorted(files) == ["/page/app.css", "/page/app.js", "/page/early.js", "/page/later.js"]
    for name in ("app", "early", "later"):
        text = server.request("GET", f"/page/{name}.js").body.decode()
        assert not re.search(r"^(import|export) ", text, re.M), name


# Overview

def test_the_overview_counts_and_filters(start, open_page, provider, device):
    server = start()
    one = provider(server)
    for _ in range(3):
        one.alert(device, "Good")
    one.push(device, {"aps": {"alert": "Bad"}}, topic="")
    view = open_page(server, "/?view=overview").live()
    view.page.locator(".tile", has_text="Pushes").get_by_text("4", exact=True).wait_for()
    assert "75 %" in view.page.locator(".tile", has_text="Accepted").inner_text()
    assert "3 accepted" in view.page.locator(".chart-caption").inner_text() and "1 rejected" in view.page.locator(".chart-caption").inner_text()
    view.page.locator(".ranking", has_text="Reasons").get_by_role("button").first.click()
    view.until("() => document.querySelectorAll('.row').length === 1")
    assert "q=reason%3AMissingTopic" in view.url


def test_the_overview_is_beside_the_list_while_no_push_is_selected(start, open_page, provider, device):
    server = start()
    one = provider(server)
    one.alert(device, "Hello")
    view = open_page(server).live()
    overview = view.page.locator(".detail .overview")
    overview.locator(".tile", has_text="Pushes").get_by_text("1", exact=True).wait_for()
    one.push(device, {"aps": {"alert": "Bad"}}, topic="")
    overview.locator(".tile", has_text="Pushes").get_by_text("2", exact=True).wait_for()
    overview.locator(".ranking", has_text="Reasons").get_by_role("button").first.click()
    view.until("() => document.querySelectorAll('.row').length === 1")
    overview.locator(".tile", has_text="Pushes").get_by_text("1", exact=True).wait_for()
    view.page.locator(".row").first.click()
    overview.wait_for(state="detached")


def test_a_time_range_selected_in_the_overview_filters_the_list(start, open_page, provider, device):
    server = start()
    one = provider(server)
    one.alert(device, "Before")
    server.api("POST", "/clock/advance", {"by": "10m"})
    one.alert(device, "After")
    view = open_page(server, "/?view=overview").live()
    chart = view.page.get_by_role("slider", name="Pushes over time by outcome")
    chart.locator("path").first.wait_for()
    box = chart.bounding_box()
    view.page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 40)
    view.page.mouse.down()
    view.page.mouse.move(box["x"] + box["width"] - 2, box["y"] + 40, steps=4)
    view.page.mouse.up()
    view.until("() => document.querySelectorAll('.row').length === 1")
    view.row("After").wait_for()
    assert "since" in view.url and "until" in view.url

    view.page.go_back()
    chart.locator("path").first.wait_for()
    chart.focus()
    view.page.keyboard.press("ArrowLeft")
    assert "1 accepted" in chart.get_attribute("aria-valuetext")
    view.page.keyboard.press("Enter")
    view.row("After").wait_for()


def test_a_time_range_selected_by_keys_is_kept_while_pushes_arrive(start, open_page, provider, device):
    server = start()
    one = provider(server)
    one.alert(device, "Before")
    view = open_page(server, "/?view=overview").live()
    chart = view.page.get_by_role("slider", name="Pushes over time by outcome")
    chart.locator("path").first.wait_for()
    chart.focus()
    view.page.keyboard.press("ArrowLeft")
    selected = chart.get_attribute("aria-valuetext")
    assert "Enter" in selected
    one.alert(device, "After")
    view.until("() => document.querySelector('[data-group=all] .group-count')?.textContent === '2'")
    # The Overview was drawn at the same moment.
    assert chart.get_attribute("aria-valuetext") == selected
    view.page.keyboard.press("Enter")
    view.row("Before").wait_for()
    # Beside the list, the focus stays in the chart.
    chart.focus()
    view.page.keyboard.press("ArrowLeft")
    view.page.keyboard.press("Enter")
    view.until("() => document.querySelector('.detail .overview-content')?.getAttribute('aria-busy') === 'false'")
    assert view.page.evaluate("() => document.activeElement.className") == "chart-area"


def test_the_overview_of_an_invalid_search_says_so(start, open_page, provider, device):
    server = start()
    view = open_page(server, "/?view=overview&q=stauts:503")
    view.page.locator(".overview .notice.is-error", has_text="stauts").wait_for()
    view.forget_complaint()  # The browser itself logs the 400.


def test_an_error_of_the_counts_is_that_of_its_search(start, open_page, provider, device):
    server = start()
    one = provider(server)
    one.alert(device, "Good")
    one.push(device, {"aps": {"alert": "Bad"}}, topic="")
    view = open_page(server).live()
    overview = view.page.locator(".detail .overview")
    pushes = overview.locator(".tile", has_text="Pushes")
    pushes.get_by_text("2", exact=True).wait_for()
    view.page.route("**/api/v1/stats?search=status*200*", lambda route: route.fulfill(status=400, json={"detail": "not counted"}))
    view.page.get_by_label("Search pushes").fill("status:200")
    overview.locator(".is-error", has_text="not counted").wait_for()
    # The other counts go on.
    one.alert(device, "Third")
    view.until("() => document.querySelector('[data-group=all] .group-count').textContent === '3'")
    view.page.get_by_label("Search pushes").fill("status:400")
    pushes.get_by_text("1", exact=True).wait_for()
    assert overview.locator(".is-error").count() == 0
    view.page.get_by_label("Search pushes").fill("status:200")
    overview.locator(".is-error", has_text="not counted").wait_for()
    # The next count of the same search ends the problem.
    view.page.unroute("**/api/v1/stats?search=status*200*")
    one.alert(device, "Fourth")
    pushes.get_by_text("3", exact=True).wait_for()
    view.forget_complaint()


def test_findings_that_cannot_be_counted_leave_the_other_counts(server, open_page, provider, device):
    view = open_page(server, "/?view=findings").live()
    view.page.route("**/api/v1/findings?*", lambda route: route.fulfill(status=500, json={"detail": "not counted"}))
    provider(server).alert(device, "Good")
    view.page.locator(".is-error", has_text="not counted").wait_for()
    view.until("() => document.querySelector('[data-group=all] .group-count').textContent === '1'")
    view.page.unroute("**/api/v1/findings?*")
    view.page.get_by_text("No findings: ").wait_for()
    view.forget_complaint()


# Findings

def test_findings_have_trend_evidence_advice_and_commands(start, open_page, provider, device, binary):
    server = start()
    one = provider(server)
    for _ in range(3):
        one.push(device, {"aps": {"alert": "Bad"}}, topic="")
    view = open_page(server, "/?view=findings").live()
    card = view.page.get_by_role("article", name="retried-permanent")
    card.wait_for()
    found = next(item for item in server.api("GET", "/findings")["items"] if item["finding"] == "retried-permanent")
    assert found["advice"] in card.inner_text() and f"{found['count']} pushes" in card.inner_text()
    card.get_by_text("How to reproduce").click()
    commands = card.locator(".command code").all_inner_texts()
    assert commands[0] == "apns-mock profile use bad-token-400"
    card.get_by_role("button", name=f"Open push {found['records'][0]['seq']}").click()
    view.page.locator(f".tab-panel[data-seq='{found['records'][0]['seq']}']").wait_for()


def test_the_profiles_in_commands_exist(start, open_page):
    server = start()
    names = {profile["name"] for profile in server.api("GET", "/profiles")["items"]}
    source = server.request("GET", "/page/modules/panels/reproduction.js").body.decode()
    used = set(re.findall(r'": "([\w-]+)"', source))
    assert used and used <= names
    kinds = set(re.findall(r'"([\w-]+)": "', source))
    assert "hot-retry" in kinds


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
    view.page.get_by_role("button", name="Next").click()
    view.page.get_by_role("button", name="phone-50", exact=True).wait_for()
    view.page.get_by_role("button", name="Previous").click()
    view.page.get_by_role("button", name="phone-0", exact=True).wait_for()
    view.page.get_by_label("Search", exact=True).fill("phone-1299")
    view.page.get_by_role("button", name="phone-1299", exact=True).wait_for()
    assert view.page.locator(".device-table tbody tr").count() == 1
    view.page.get_by_label("Search", exact=True).fill("offline")
    view.page.get_by_text("No registered device token matches.").wait_for()


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


# Faults

def test_a_rule_is_written_by_the_form_and_tried_on_recorded_pushes(start, open_page, provider, device):
    server = start()
    one = provider(server)
    for number in range(6):
        one.push(device, {"aps": {"alert": "x"}}, topic="com.example.app" if number % 3 else "com.other.app")
    view = open_page(server, "/?view=faults").live()
    view.page.get_by_text("Add a rule").click()
    view.page.get_by_label("Pushes", exact=True).fill("topic:com.other.*")
    view.page.get_by_text("2 of the last 6 pushes").wait_for()
    view.page.get_by_label("Pushes", exact=True).fill("topc:com.other.app")
    view.page.locator(".rule-result .is-error", has_text="topc").wait_for()
    view.page.get_by_label("Pushes", exact=True).fill("topic:com.other.*")
    view.page.get_by_label("Action").select_option("Delay the response")
    view.page.get_by_label("By", exact=True).fill("1ms")
    view.page.get_by_text("2 of the last 6 pushes").wait_for()
    view.page.get_by_label("Action").select_option("Respond with an error")
    view.page.get_by_role("button", name="Add the rule").click()
    view.page.get_by_role("button", name="Remove outage").wait_for()
    assert one.push(device, {"aps": {"alert": "x"}}, topic="com.other.app").status_code == 503
    assert one.alert(device, "Another topic") == 200


def test_the_clock_is_frozen_advanced_and_reset(start, open_page):
    server = start()
    view = open_page(server, "/?view=faults").live()
    clock = view.page.get_by_role("region", name="Clock")
    clock.get_by_role("button", name="Freeze").click()
    clock.get_by_text("frozen", exact=True).wait_for()
    before = server.api("GET", "/clock")
    assert before["mode"] == "frozen"
    clock.get_by_role("button", name="Advance the clock by 61m").click()
    view.until("(before) => document.querySelector('.clock-time')?.textContent.includes(before) === false", before["now"][11:16])
    assert server.api("GET", "/clock")["now"] > before["now"]
    clock.get_by_label("Advance by").fill("soon")
    clock.get_by_role("button", name="Advance", exact=True).click()
    clock.get_by_text("Use a duration such as").wait_for()
    clock.get_by_role("button", name="Real time").click()
    clock.get_by_text("real time", exact=True).wait_for()
    assert server.api("GET", "/clock")["mode"] == "real"


def test_the_clock_says_that_new_provider_tokens_are_expired(start, open_page):
    server = start()
    view = open_page(server, "/?view=faults").live()
    clock = view.page.get_by_role("region", name="Clock")
    clock.get_by_text("real time", exact=True).wait_for()
    bar = view.page.locator(".bar-clock")
    assert not bar.is_visible() and not clock.get_by_text("ExpiredProviderToken").is_visible()
    clock.get_by_role("button", name="Advance the clock by 20m").click()
    bar.get_by_text("clock +20 min").wait_for()
    assert "403" not in bar.text_content()
    clock.get_by_role("button", name="Advance the clock by 61m").click()
    banner = view.page.locator(".banner", has_text="gets 403 ExpiredProviderToken")
    banner.wait_for()
    assert "expired-jwt-403" in banner.inner_text()
    clock.get_by_text("gets 403 ExpiredProviderToken until the clock shows the real time").wait_for()
    clock.get_by_role("button", name="Real time").click()
    bar.wait_for(state="hidden")
    banner.wait_for(state="hidden")
    clock.get_by_text("gets 403 ExpiredProviderToken").wait_for(state="hidden")


# Hostile data

def test_hostile_data_stays_text(start, open_page, provider, device):
    server = start()
    server.api("PUT", "/fixtures", fixtures(1))
    one = provider(server)
    for _ in range(2):
        one.push(device, {"aps": {"alert": {"title": HOSTILE, "body": HOSTILE}, "badge": 3}}, topic="<img/src=x>")
    one.alert(device, HOSTILE)
    one.push(f"{0:08x}" * 8, {"aps": {"alert": {"title": HOSTILE}, "badge": 3}}, apns_collapse_id="<b>id</b>")
    server.api("POST", "/rules", {"name": "late", "when": {"topic": "<i>none</i>"}, "do": {"respond": {"status": 429, "reason": "<b>no</b>"}}})
    run = server.request("POST", "/api/v1/runs", {"name": HOSTILE, "labels": {HOSTILE: "<b>label</b>"}}).json["id"]
    server.request("POST", f"/api/v1/runs/{run}/tests", {"name": HOSTILE})
    view = open_page(server).live()
    for path in ("overview", "findings", "connections", "devices", "faults", "runs", f"runs&run={run}"):
        view.visit(f"/?view={path}")
        view.page.locator("main > .panel").wait_for()
        if path == "overview":
            view.page.locator(".ranking", has_text="<img/src=x>").first.wait_for()
        elif path == "findings":
            view.page.locator(".finding").first.wait_for()
        elif path == "connections":
            view.page.locator(".track-head").first.click()
            view.page.locator(".sequence").wait_for()
        elif path == "devices":
            view.page.get_by_role("button", name="phone-0", exact=True).click()
            view.page.locator(".device-detail .phone").wait_for()
            view.page.get_by_role("button", name="Recent device tokens").click()
            view.page.locator(".device .screen-line").first.wait_for()
        elif path == "faults":
            view.page.get_by_role("button", name="Remove late").wait_for()
        elif path == "runs":
            view.page.locator(".runs tbody tr").first.wait_for()
        else:
            view.page.locator(".report-verdict").wait_for()
        assert view.page.title().endswith("apns-mock"), path
        assert view.page.locator("main img, main script, main iframe, main b, main i").count() == 0, path
        assert view.page.evaluate("() => document.documentElement.scrollWidth") <= 1440, path
