"""The list of the web UI: links to pushes, columns, sorting, selection, and what it shows while the server changes."""

import re
import urllib.parse

import pytest

from support import stores
from support.server import wait_until


def titles(view):
    return view.page.locator(".row .row-title").all_inner_texts()


def parameters(view):
    return dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(view.url).query))


def selected(view):
    return view.page.locator(".row[aria-selected=true] .row-title").all_inner_texts()


def send(one, device, count):
    for number in range(count):
        assert one.alert(device, f"Row {number:03}") == 200


@pytest.fixture
def five(start, open_page, provider, device):
    """A page with the rows `Row 004` to `Row 000`."""
    server = start()
    send(provider(server), device, 5)
    view = open_page(server).live()
    view.row("Row 000").wait_for()
    view.server = server
    return view


# Links


def test_a_link_names_the_apns_id(start, open_page, provider, device):
    server = start()
    send(provider(server), device, 210)  # more than two requests load
    old = server.pushes(limit=1)[0]
    view = open_page(server).live()
    view.row("Row 209").locator(".row-title").click()
    view.page.locator(".detail-title", has_text="Row 209").wait_for()
    newest = server.pushes(order="desc", limit=1)[0]
    assert parameters(view) == {"push": newest["apns"]["id"], "seq": str(newest["seq"])}

    # A link to an old push scrolls to its row and marks it.
    view.page.goto(f"{view.base}/?push={old['apns']['id']}")
    view.page.locator(".detail-title", has_text="Row 000").wait_for()
    row = view.page.locator(".row[aria-current=true]")
    row.wait_for()
    assert row.get_attribute("data-seq") == "1" and row.get_attribute("aria-selected") == "true"
    box, area = row.bounding_box(), view.page.locator(".list").bounding_box()
    assert area["y"] <= box["y"] and box["y"] + box["height"] <= area["y"] + area["height"] + 1
    view.until("() => new URLSearchParams(location.search).has('seq')")
    assert parameters(view) == {"push": old["apns"]["id"], "seq": "1"}
    # Links with a seq continue to work.
    view.page.goto(f"{view.base}/?push=7&tab=headers")
    view.page.locator(".detail-title", has_text="Row 006").wait_for()
    view.page.goto(f"{view.base}/?push=00000000-0000-0000-0000-000000000000")
    view.page.locator(".detail-empty", has_text="there is no push with apns-id").wait_for()
    view.forget_complaint()  # The browser logs the 404.


def test_a_link_to_an_attempt(start, open_page, provider, device):
    server = start("--profile", "flaky-503?rate=1&streak=2")
    one = provider(server)
    id = "9d3220fe-0000-4000-8000-0123456789ab"
    for _ in range(3):
        one.push(device, {"aps": {"alert": "Again"}}, apns_id=id)
    view = open_page(server, f"/?push={id}", permissions=["clipboard-read", "clipboard-write"]).live()
    view.page.locator(".detail-line", has_text="#3").wait_for()
    view.page.locator(".attempts .attempt").first.click()
    view.page.locator(".detail-line", has_text="#1").wait_for()
    view.until("() => new URLSearchParams(location.search).get('attempt') === '1'")
    view.page.get_by_role("button", name="Copy link").click()
    view.page.locator(".toast", has_text="Copied the link").wait_for()
    link = view.page.evaluate("() => navigator.clipboard.readText()")
    inbox = server.api("GET", "/status")["inbox"]["id"]
    assert link == f"{view.base}/?push={id}&attempt=1&seq=1&inbox={inbox}"
    view.page.goto(link)
    view.page.locator(".detail-line", has_text="#1").wait_for()
    assert view.page.get_by_text("The link is of another inbox").count() == 0
    view.page.goto(link.replace(inbox, "00000000"))
    view.page.get_by_text("The link is of another inbox").wait_for()
    view.page.goto(link)
    view.page.locator(".detail-line", has_text="#1").wait_for()
    view.page.reload()
    view.page.locator(".detail-line", has_text="#1").wait_for()


# Correct in all states


def test_grouped_retries_show_the_last_outcome_on_load(start, open_page, provider, device):
    server = start("--profile", "flaky-503?rate=1&streak=2")
    one = provider(server)
    assert [one.alert(device, "Again") for _ in range(3)] == [503, 503, 200]
    view = open_page(server, "/?fold=1").live()
    view.page.locator(".row .chip", has_text="3/3").wait_for()
    assert view.page.locator(".row .row-status").all_inner_texts() == ["200"]
    # A request that fails is sent again.
    failed = []
    view.page.route("**/api/v1/pushes?q=push_key*", lambda route: (failed.append(route), route.abort()), times=1)
    view.page.reload()
    view.live()
    view.page.locator(".row .is-cell-attempt .chip").wait_for()
    wait_until(lambda: view.page.title() and failed, "the attempts were not requested")
    other = "ab12" * 16
    assert [one.alert(other, "Live") for _ in range(2)] == [503, 503]
    row = view.row("Live")
    row.locator(".chip", has_text="2/2").wait_for()
    assert one.alert(other, "Live") == 200
    row.locator(".row-status", has_text="200").wait_for()
    assert len(titles(view)) == 2
    view.row("Again").locator(".chip", has_text="3/3").wait_for()
    view.complaints.clear()  # The browser logs the request that failed.


def test_a_server_that_is_gone_is_announced(start, open_page):
    first = start()
    address = f"127.0.0.1:{first.admin_port}"
    view = open_page(first).live()
    banner = view.page.get_by_role("alert")
    assert banner.count() == 0
    first.stop()
    banner.get_by_text("Server is not reachable").wait_for(timeout=5000)
    view.page.get_by_label("Search pushes").fill("zebra")
    view.page.get_by_role("button", name="Try again").wait_for()
    start(admin=address)
    banner.wait_for(state="hidden")
    view.page.get_by_text("No pushes yet.").wait_for()
    view.live()
    view.complaints.clear()  # The browser logs each refused connection.


def test_pushes_that_are_forwarded_are_announced(start, open_page, provider, device):
    """A permanent banner says where pushes go; a push shows upstream's answer beside that of the rules."""
    real = start()
    server = start("--upstream", real.url, "--upstream-ca", real.ca)
    real.api("PUT", f"/devices/{device}", {"state": "unregistered"})
    assert provider(server).alert(device, "Hello") == 410
    view = open_page(server, "/?push=1&tab=verdict").live()
    view.page.get_by_text(f"Relaying to {real.url}: 1 answered, 0 refused, 0 undecided, 0 waiting.").wait_for()
    view.page.get_by_text("410 Unregistered, deviates from the checks").first.wait_for()
    view.page.get_by_text("Upstream answered 410 Unregistered: this deviates from the rules").wait_for()


@pytest.mark.parametrize(("policy", "consequence"), [
    ("refuse", "pushes are answered 503"), ("drop", "pushes are answered and not kept")])
def test_a_store_that_fails_is_announced(start, tmp_path, open_page, provider, device, policy, consequence):
    place = tmp_path / "inbox.db"
    server = start(*stores.flags(place, "--store-failure", policy))
    one, view = provider(server), open_page(server).live()
    banner = view.page.get_by_role("alert")
    assert banner.count() == 0
    with stores.exclusive_lock(place):
        wait_until(lambda: one.alert(device, "Hello") and stores.status(server)["store"]["problem"],
                   "the failure is detected", 20)
        banner.get_by_text(consequence).wait_for()
        # On a slow machine, the first reason may be that the database does not answer.
        banner.get_by_text("locked").wait_for()
    banner.get_by_text("The store of the inbox fails").wait_for(state="hidden")
    lost = stores.status(server)["store"]["lost"]
    assert (banner.inner_text() if banner.count() else "") == (
        f"Lost because the store failed: {lost} push{'es' if lost > 1 else ''}." if lost else "")
    view.complaints.clear()  # The browser logs answers with 503.


def test_relative_times_use_the_clock_of_the_server(start, open_page, provider, device):
    server = start()
    server.api("POST", "/clock/advance", {"by": "59m"})
    one = provider(server)
    one.alert(device, "Ahead")
    view = open_page(server).live()
    view.row("Ahead").wait_for()
    view.until("() => /^(now|\\d+ s)$/.test(document.querySelector('.row-time')?.textContent)")
    server.api("PUT", "/clock", {"mode": "frozen", "now": "2040-01-01T00:00:00Z"})
    one.alert(device, "Frozen")
    view.row("Frozen").wait_for()
    view.until("() => [...document.querySelectorAll('.row-time')].every((time) => !time.textContent.startsWith('in '))")
    view.until("() => document.querySelector('.row[aria-posinset=\"1\"] .row-time')?.textContent === 'now'")
    # Received later than the present of a clock that was moved back.
    server.api("PUT", "/clock", {"mode": "frozen", "now": "2039-12-31T23:00:00Z"})
    view.page.reload()
    view.row("Frozen").wait_for()
    view.until("() => /^\\d\\d:\\d\\d:\\d\\d$/.test(document.querySelector('.row[aria-posinset=\"1\"] .row-time')?.textContent)")


def test_one_number_while_paused(start, open_page, provider, device):
    server = start()
    one = provider(server)
    send(one, device, 60)
    view = open_page(server).live()
    view.row("Row 059").wait_for()
    view.page.locator(".list").evaluate("(list) => { list.scrollTop = 600; }")
    one.alert(device, "Before the pause")
    view.page.locator(".pill", has_text="1 new").wait_for()
    view.until("() => document.querySelector('[data-group=all] .group-count')?.textContent === '61'")
    view.page.keyboard.press(".")
    for number in range(3):
        one.alert(device, f"Paused {number}")
    view.page.locator(".bar-live", has_text="4 new").wait_for()
    assert view.page.locator(".pill").is_hidden()
    view.page.wait_for_timeout(800)  # longer than the page waits between two counts
    assert view.page.locator("[data-group=all] .group-count").inner_text() == "61", "the groups wait as well"
    view.page.keyboard.press(".")
    view.page.locator(".pill", has_text="4 new").wait_for()


def test_a_deleted_push_does_not_stay_open(five):
    five.row("Row 002").locator(".row-title").click()
    five.page.locator(".detail-title", has_text="Row 002").wait_for()
    five.server.api("DELETE", "/pushes", seqs="3")
    five.page.locator(".detail-title").wait_for(state="detached")
    five.until("() => document.querySelectorAll('.row').length === 4")
    assert "push" not in parameters(five)


def test_an_accepted_push_advises_no_wait(start, open_page, provider, device):
    server = start("--profile", "flaky-503?rate=1&streak=2")
    one = provider(server)
    assert [one.alert(device, "Hot") for _ in range(3)] == [503, 503, 200]
    assert "hot-retry" in server.pushes()[-1]["findings"]
    view = open_page(server, "/?push=3&tab=verdict").live()
    view.page.locator(".verdict-advice", has_text="No action needed.").wait_for()
    view.page.goto(f"{view.base}/?push=2&tab=verdict")
    view.page.locator(".verdict-advice", has_text="Wait before a retry").wait_for()


@pytest.mark.parametrize("tab", ["auth", "verdict", "timeline"])
def test_the_current_tab_is_visible_on_a_narrow_screen(server, open_page, provider, device, tab):
    provider(server).alert(device, "Narrow")
    view = open_page(server, f"/?push={server.record(device)['seq']}&tab={tab}", width=390, height=844)
    current = view.page.locator(".tab[aria-selected=true]")
    current.wait_for()
    box = current.bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= 390


@pytest.mark.parametrize("width", [768, 1024, 1440])
def test_the_select_of_the_preview_does_not_cover_the_phone(server, open_page, provider, device, width):
    provider(server).alert(device, "Lock screen")
    view = open_page(server, f"/?push={server.record(device)['seq']}", width=width)
    view.page.locator(".surface-picker").wait_for()
    picker, phone = view.page.locator(".surface-picker").bounding_box(), view.page.locator(".phone").bounding_box()
    assert picker["y"] + picker["height"] <= phone["y"]


@pytest.mark.parametrize("width", [390, 1440])
def test_long_topics_and_states_do_not_overlap(start, open_page, provider, device, width):
    server = start()
    one = provider(server)
    one.push(device, {"aps": {"alert": "T" * 200}}, topic="com.example." + "very-long-" * 12)
    one.push(device, {"aps": {"alert": "x"}}, topic="")
    view = open_page(server, width=width, height=844).live()
    view.page.locator(".row .row-title").first.wait_for()
    assert view.page.locator(".row").evaluate_all("""(rows) => rows.flatMap((row) => {
        const parts = [...row.querySelectorAll(":scope > span:not(.row-facts), :scope > time, .row-facts > *")].map((part) => ({ text: part.textContent, box: part.getBoundingClientRect() }))
          .filter(({ box }) => box.width > 0);
        return parts.flatMap((one, index) => parts.slice(index + 1).filter((other) =>
          one.box.left < other.box.right - 1 && other.box.left < one.box.right - 1 && one.box.top < other.box.bottom - 1 && other.box.top < one.box.bottom - 1)
          .map((other) => `${one.text} / ${other.text}`));
      })""") == []


# Columns


def test_columns_are_chosen_and_kept(five):
    heads = five.page.locator(".column-name")
    assert "Size" not in heads.all_inner_texts()
    five.page.get_by_role("button", name="Columns", exact=True).click()
    five.page.get_by_label("Size", exact=True).check()
    five.page.get_by_label("Token", exact=True).uncheck()
    five.page.keyboard.press("Escape")
    assert five.page.locator(".menu").last.is_hidden()
    five.page.reload()
    five.row("Row 000").wait_for()
    assert "Size" in heads.all_inner_texts() and "Token" not in heads.all_inner_texts()
    size = five.server.pushes()[0]["request"]["size"]["bytes"]
    assert five.page.locator(".is-cell-size").all_inner_texts() == [f"{size} B"] * 5


def test_columns_are_resized_by_mouse_and_keyboard(five):
    head = five.page.locator(".column-head", has_text="Topic")
    before = head.bounding_box()
    handle = head.locator(".column-handle")
    box = handle.bounding_box()
    five.page.mouse.move(box["x"] + 4, box["y"] + 10)
    five.page.mouse.down()
    five.page.mouse.move(box["x"] + 44, box["y"] + 10, steps=4)
    five.page.mouse.up()
    assert round(head.bounding_box()["width"] - before["width"]) == 40
    head.get_by_role("button").focus()
    five.page.keyboard.press("ArrowLeft")
    assert round(head.bounding_box()["width"] - before["width"]) == 24
    assert five.page.evaluate("() => document.activeElement.dataset.column") == "topic", "the focus stays"
    five.page.reload()
    head.wait_for()
    assert round(head.bounding_box()["width"] - before["width"]) == 24


def test_the_list_is_sorted(start, open_page, provider, device):
    server = start()
    one = provider(server)
    for title in ("bb", "ccc", "a"):
        one.push(device, {"aps": {"alert": title}}, topic=f"com.example.{title}")
    one.push(device, {"aps": {"alert": "none"}}, topic="")
    view = open_page(server).live()
    view.row("none").wait_for()
    view.page.get_by_role("button", name="Sort by Topic").click()
    ordered = """() => [...document.querySelectorAll('.row')].sort((a, b) => a.ariaPosInSet - b.ariaPosInSet).map((row) => row.querySelector('.row-title')?.textContent)"""
    view.until(f"() => ({ordered})().join() === 'none,a,bb,ccc'")
    assert parameters(view) == {"sort": "topic"}
    view.page.get_by_role("button", name="Sort by Topic").click()
    view.until(f"() => ({ordered})().join() === 'ccc,bb,a,none'")
    one.push(device, {"aps": {"alert": "zzzz"}}, topic="com.example.zzzz")
    view.page.locator(".pill", has_text="1 new, sort again").click()
    view.until(f"() => ({ordered})().join() === 'zzzz,ccc,bb,a,none'")
    view.page.reload()
    view.until(f"() => ({ordered})().join() === 'zzzz,ccc,bb,a,none'")
    view.page.get_by_role("button", name="Sort by Time").click()
    view.until(f"() => ({ordered})().join() === 'zzzz,none,a,ccc,bb'")
    assert parameters(view) == {}
    view.page.goto(view.base + "/?sort=nonsense")
    view.until(f"() => ({ordered})().join() === 'zzzz,none,a,ccc,bb'")
    view.forget_complaint()  # The browser logs the 400.


# Selection


def test_several_pushes_are_selected_by_mouse(five):
    def click(title, *modifiers):
        five.row(title).locator(".row-title").click(modifiers=list(modifiers))

    click("Row 003")
    assert selected(five) == ["Row 003"]
    click("Row 001", "Shift")
    assert sorted(selected(five)) == ["Row 001", "Row 002", "Row 003"]
    click("Row 002", "Control")
    assert sorted(selected(five)) == ["Row 001", "Row 003"]
    five.page.locator(".list-count", has_text="5 pushes, 2 selected").wait_for()
    five.page.get_by_role("button", name="Select all").click()
    assert len(selected(five)) == 5
    five.page.get_by_role("button", name="Select none").click()
    assert selected(five) == []


def test_several_pushes_are_selected_by_keyboard(five):
    keys = five.page.keyboard
    five.page.locator(".list").focus()
    keys.press("j")
    keys.press("Shift+ArrowDown")
    keys.press("Shift+ArrowDown")
    assert sorted(selected(five)) == ["Row 002", "Row 003", "Row 004"]
    keys.press("Shift+ArrowUp")
    assert sorted(selected(five)) == ["Row 003", "Row 004"]
    keys.press("x")
    assert selected(five) == ["Row 004"]
    keys.press("Control+a")
    assert len(selected(five)) == 5
    assert five.page.locator(".list").get_attribute("aria-multiselectable") == "true"
    keys.press("Escape")
    assert selected(five) == ["Row 003"], "Escape returns to one"
    keys.press("End")
    assert selected(five) == ["Row 000"]
    keys.press("?")
    sheet = five.page.get_by_role("dialog").inner_text()
    for text in ("select more", "select all", "compare the selected", "edit and send again"):
        assert text in sheet


def test_all_pushes_of_a_search_are_selected(start, open_page, provider, device):
    server = start()
    one = provider(server)
    send(one, device, 150)
    send(one, "ab12" * 16, 3)
    view = open_page(server, f"/?q=token:{device}").live()
    view.page.locator(".list-count", has_text="150 of 153 pushes").wait_for()
    view.page.get_by_role("button", name="Select all").click()
    view.page.locator(".list-count", has_text="150 selected").wait_for()


@pytest.fixture
def partly_loaded(start, open_page, provider, device):
    """A list of 150 pushes of which 32 are loaded, and a function that has the others loaded."""
    server = start()
    send(provider(server), device, 150)
    view = open_page(server, "/?view=connect")
    rest = []
    view.page.route("**/api/v1/pushes/seqs?*", lambda route: rest.append(route))
    view.page.goto(view.base)
    view.page.locator(".list-count", has_text="150").wait_for()
    view.page.get_by_role("button", name="Select all").click()
    view.page.locator(".list-count", has_text="32 selected").wait_for()

    def load_rest():
        while rest:
            rest.pop().continue_()

    return view, load_rest


def test_pushes_that_are_still_loaded_are_selected_with_all(partly_loaded):
    view, load_rest = partly_loaded
    load_rest()
    view.page.locator(".list-count", has_text="150 selected").wait_for()


def test_another_selection_ends_that_of_what_is_still_loaded(partly_loaded):
    view, load_rest = partly_loaded
    view.page.locator(".row").first.click()
    with view.page.expect_response("**/api/v1/pushes/seqs?*") as response:
        load_rest()
    response.value.finished()
    for _ in range(2):
        view.page.evaluate("() => new Promise(requestAnimationFrame)")
    assert view.page.locator(".row[aria-selected=true]").count() == 1
    assert "selected" not in view.page.locator(".list-count").inner_text()


# curl


def test_the_copied_curl_command_runs(start, open_page, provider, device, paste):
    server = start()
    provider(server).push(device, {"aps": {"alert": "It's $HOME"}}, apns_collapse_id="a b")
    view = open_page(server, "/?push=1", permissions=["clipboard-read", "clipboard-write"])
    view.page.get_by_role("button", name="curl", exact=True).click()
    view.page.locator(".toast", has_text="curl").wait_for()
    command = view.page.evaluate("() => navigator.clipboard.readText()")
    assert "$TOKEN" not in command
    assert "HTTP/2 200" in paste(server, command, "sh")
    wait_until(lambda: len(server.pushes()) == 2, "the push did not arrive")
    first, again = server.pushes()
    assert again["request"]["payload"] == first["request"]["payload"] and re.match("a b", again["apns"]["collapse_id"])
