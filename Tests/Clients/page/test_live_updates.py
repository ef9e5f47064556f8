"""Live updates of the web UI: pushes appear, the list does not move under the pointer, faults are changed and
paused.
"""

import threading

import pytest


def with_rows(count, server, open_page, provider, device):
    """Sends this many pushes; returns the provider and the page that shows the last of them."""
    one = provider(server)
    for number in range(count):
        one.alert(device, f"Row {number}")
    view = open_page(server).live()
    view.row(f"Row {count - 1}").wait_for()
    return one, view


def test_the_first_push_appears_without_reload(start, open_page, provider, device):
    server = start()
    view = open_page(server).live()
    view.page.get_by_text("No pushes yet.").wait_for()
    assert provider(server).alert(device, "Welcome") == 200
    view.row("Welcome").wait_for()
    assert view.page.locator(".list-count").inner_text() == "1 push"
    view.until("() => document.querySelector('[data-group=accepted] .group-count')?.textContent === '1'")


def test_the_empty_page_explains_how_to_connect_a_client(start, open_page):
    server = start()
    view = open_page(server).live()
    view.page.get_by_role("button", name="Connect a client").last.click()
    settings = view.page.locator(".settings")
    settings.get_by_text(server.ca).wait_for()
    text = settings.inner_text()
    for value in (server.authority, server.ca, server.key_path, server.key_id, server.team_id):
        assert value in text
    for name in ("curl", "Pushy (Java)", "node-apn (Node)", "apns2 (Go)", "APNSwift", "aioapns (Python)", "apnotic (Ruby)"):
        view.page.get_by_role("button", name=name, exact=True).click()
        lines = view.page.get_by_label("Code example").inner_text()
        assert str(server.port) in lines, name


def test_a_test_push_is_sent_through_the_apns_listener(start, open_page):
    server = start()
    view = open_page(server, "/?view=connect").live()
    view.page.locator(".settings").get_by_text(server.ca).wait_for()
    kinds = view.page.get_by_label("Kind").locator("option").all_inner_texts()
    for name in kinds:
        view.page.get_by_label("Kind").select_option(name)
        view.page.locator(".test-result").evaluate("(place) => place.replaceChildren()")
        view.page.get_by_role("button", name="Send a test push").click()
        view.page.locator(".test-result", has_text="200").wait_for()
    assert len(server.pushes()) == len(kinds)
    view.page.get_by_role("link", name="apns-mock").click()
    view.until("(number) => document.querySelectorAll('.row').length === number", len(kinds))


def test_a_delayed_push_is_pending_and_then_complete(start, open_page, provider, device):
    server = start()
    server.api("POST", "/rules", {"name": "slow", "do": {"delay": {"fixed": "3s"}}})
    view = open_page(server).live()
    one = provider(server)
    sent = threading.Thread(target=lambda: one.alert(device, "Held"))
    sent.start()
    view.page.locator(".row .is-pending").first.wait_for()
    view.row("Held").click()
    view.page.locator(".badge.is-pending").wait_for()
    view.page.locator(".badge.is-accepted, .badge.is-rejected").wait_for()
    sent.join()
    assert view.page.locator(".row .is-pending").count() == 0


def test_pause_withholds_new_pushes(start, open_page, provider, device):
    server = start()
    one = provider(server)
    one.alert(device, "Before")
    view = open_page(server).live()
    view.row("Before").wait_for()
    view.page.keyboard.press(".")
    for number in range(3):
        one.alert(device, f"Meanwhile {number}")
    view.page.locator(".bar-live", has_text="3 new").wait_for()
    view.until("() => document.title === '(3) apns-mock'")
    assert view.page.locator(".row").count() == 1
    view.page.keyboard.press(".")
    view.until("() => document.querySelectorAll('.row').length === 4")
    view.until("() => document.title === 'apns-mock'")


def test_the_row_under_the_pointer_stays(start, open_page, provider, device):
    server = start()
    one = provider(server)
    for number in range(60):
        one.alert(device, f"Row {number}")
    view = open_page(server).live()
    row = view.row("Row 55")
    row.wait_for()
    row.hover()
    before = row.bounding_box()
    for number in range(5):
        one.alert(device, f"Late {number}")
    view.page.locator(".pill", has_text="5 new").wait_for()
    assert row.bounding_box() == before
    view.page.locator(".pill").click()
    view.row("Late 4").wait_for()
    assert not view.page.locator(".pill").is_visible()


def test_a_reset_empties_the_page(start, open_page, provider, device):
    """A scrolled list keeps its position and shows the number of new pushes, unless the inbox was emptied."""
    server = start()
    one, view = with_rows(60, server, open_page, provider, device)
    view.page.locator(".list").evaluate("(list) => { list.scrollTop = 20 * 32; }")
    row = view.row("Row 35")
    row.wait_for()
    before = row.bounding_box()
    server.api("POST", "/reset", {"counters": True, "rules": True})
    one.alert(device, "Newest")
    view.page.locator(".pill", has_text="1 new").wait_for()
    assert row.bounding_box() == before
    server.api("POST", "/reset", {"inbox": True})
    view.page.get_by_text("No pushes yet.").wait_for()
    one.alert(device, "A new beginning")
    view.row("A new beginning").wait_for()


def test_the_newest_push_is_visible_at_the_top(start, open_page, provider, device):
    server = start()
    one, view = with_rows(40, server, open_page, provider, device)
    one.alert(device, "Newest")
    view.until("() => document.querySelector('.row[aria-posinset=\"1\"] .row-title')?.textContent === 'Newest'")


def test_the_page_reconnects(start, open_page, provider, device):
    """The page reconnects to a server that was restarted at the same address."""
    first = start()
    address = f"127.0.0.1:{first.admin_port}"
    view = open_page(first).live()
    first.stop()
    view.page.locator(".bar-live.is-lost").wait_for()
    second = start(admin=address)
    view.live()
    provider(second).alert(device, "Back again")
    view.row("Back again").wait_for()
    view.complaints.clear()  # The browser logs each refused connection.


def test_faults_are_shown_changed_and_paused(start, open_page, provider, device):
    """Changes made on the page affect the responses to an independent client."""
    server = start()
    one = provider(server)
    view = open_page(server, "/?view=faults").live()
    assert not view.page.locator("#banner").is_visible()
    view.page.get_by_label("Profile", exact=True).select_option("flaky-503")
    rate = view.page.get_by_label("rate", exact=True)
    rate.wait_for()
    rate.fill("1")
    rate.press("Enter")
    rate.evaluate("(field) => field.blur()")
    view.page.locator(".bar-profile", has_text="rate 1,").wait_for()
    assert one.alert(device, "Faulted") == 503
    view.page.locator("#banner", has_text="flaky-503").wait_for()
    view.until("() => document.querySelector('.table .is-hot')?.textContent === '1'")

    slider = view.page.get_by_label("rate, slider")
    slider.fill("0")
    view.page.locator(".bar-profile", has_text="rate 0,").wait_for()
    assert one.alert(device, "Calm") == 200
    slider.fill("1")
    view.page.locator(".bar-profile", has_text="rate 1,").wait_for()
    view.page.locator("#main").get_by_role("button", name="Pause faults").click()
    view.page.locator("#banner", has_text="paused").wait_for()
    assert one.alert(device, "Halted") == 200
    view.page.locator("#main").get_by_role("button", name="Resume faults").click()
    view.page.locator("#banner", has_text="active").wait_for()
    assert one.alert(device, "Faulted again") == 503
    view.page.get_by_role("button", name="Off", exact=True).click()
    view.page.locator("#banner").wait_for(state="hidden")
    assert one.alert(device, "Healthy") == 200


def test_a_rule_is_added_explained_and_removed(start, open_page, provider, device):
    server = start()
    view = open_page(server, "/?view=faults").live()
    view.page.get_by_text("Add a rule").click()
    text = view.page.get_by_label("JSON with the syntax of a profile file")
    text.fill('{"name": "late", "do": {"respond": {"status": 429, "raeson": "TooManyRequests"}}}')
    view.page.get_by_role("button", name="Add the rule").click()
    view.page.locator(".notice.is-error").wait_for()
    assert "reason" in view.page.locator("details.card").inner_text()
    view.forget_complaint()  # The browser itself logs the 422.
    text.fill('{"name": "late", "do": {"respond": {"status": 429, "reason": "TooManyRequests"}}, "ttl": "5m"}')
    view.page.get_by_role("button", name="Add the rule").click()
    view.page.get_by_role("button", name="Remove late").wait_for()
    assert provider(server).alert(device, "Late") == 429
    view.page.get_by_role("button", name="Remove late").click()
    view.page.get_by_role("button", name="Remove late").wait_for(state="detached")
    assert provider(server).alert(device, "In time") == 200


def test_a_profile_with_a_ttl_counts_down_and_its_rules_are_explained(start, open_page, provider, device):
    server = start()
    view = open_page(server, "/?view=faults").live()
    view.page.get_by_label("Duration").select_option("for 5 minutes")
    view.page.get_by_label("Profile", exact=True).select_option("flaky-503")
    view.page.locator("#banner .countdown").wait_for()
    assert server.api("GET", "/profile")["ends_in_ms"] is not None
    before = view.page.locator("#banner .countdown").inner_text()
    assert before.startswith(("4:", "5:"))
    view.until("(before) => (document.querySelector('#banner .countdown')?.textContent ?? before) !== before", before)
    provider(server).alert(device, "Looked at")
    view.page.get_by_role("button", name="Why did flaky fire or not").click()
    view.page.locator(".code", has_text="evaluated").wait_for()


def test_the_last_chosen_profile_is_active(start, open_page):
    """Although the request for the first one takes longer."""
    server = start()
    view = open_page(server, "/?view=faults").live()
    view.page.evaluate("""() => {
        const send = window.fetch;
        let isFirst = true;
        window.fetch = async (url, options) => {
            const isDelayed = isFirst && options?.method === "PUT";
            if (isDelayed) { isFirst = false; await new Promise((resolve) => setTimeout(resolve, 700)); }
            const response = await send(url, options);
            if (options?.method === "PUT") window.changes = (window.changes ?? 0) + 1;
            return response;
        };
    }""")
    picker = view.page.get_by_label("Profile", exact=True)
    picker.select_option("flaky-503")
    picker.select_option("chaos-mix")
    view.page.locator("#bar .bar-profile", has_text="chaos-mix").wait_for()
    view.until("() => window.changes === 2")
    assert server.api("GET", "/profile")["name"] == "chaos-mix" == picker.input_value()


def test_devices_show_their_screens_and_can_be_unregistered(start, open_page, provider, device):
    server = start()
    one = provider(server)
    one.push(device, {"aps": {"alert": "On the screen", "badge": 4}}, apns_collapse_id="same")
    one.push(device, {"aps": {"alert": "In its place"}}, apns_collapse_id="same")
    view = open_page(server, "/?view=devices").live()
    screen = view.page.locator(".screen")
    screen.get_by_text("In its place").wait_for()
    assert "On the screen" not in screen.inner_text() and "4" in screen.inner_text()
    view.page.get_by_role("button", name="Uninstall").click()
    view.page.get_by_role("dialog").get_by_role("button", name="Uninstall the app").click()
    view.page.locator(".device .chip", has_text="unregistered").wait_for()
    assert one.alert(device, "Gone") == 410
    view.page.get_by_role("button", name="Register again").click()
    view.page.locator(".device .chip", has_text="online").wait_for()
    assert one.alert(device, "Back") == 200


def test_a_click_counts_if_the_view_changes_during_it(start, open_page, provider, device):
    server = start()
    one = provider(server)
    one.alert(device, "Shown")
    view = open_page(server, "/?view=devices").live()
    view.page.locator(".screen").get_by_text("Shown").wait_for()
    box = view.page.get_by_role("button", name="Uninstall").bounding_box()
    view.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    view.page.mouse.down()
    with view.page.expect_response(lambda response: "/api/v1/devices?tokens" in response.url):
        one.alert(device, "Arrived during it")
    view.page.wait_for_timeout(200)  # The view would have changed by now.
    view.page.mouse.up()
    view.page.get_by_role("dialog").get_by_role("button", name="Uninstall the app").wait_for()
    view.page.keyboard.press("Escape")
    view.page.locator(".screen").get_by_text("Arrived during it").wait_for()


def test_registered_devices_are_listed(start, open_page, provider):
    server = start()
    server.api("PUT", "/fixtures", {"devices": [{"id": "anna", "state": "offline", "apps": [
        {"bundle_id": "com.example.app", "environment": "sandbox", "tokens": {"alert": "ab12" * 16}}]}]})
    provider(server).alert("ab12" * 16, "Stored")
    view = open_page(server, "/?view=devices").live()
    row = view.page.get_by_role("row", name="anna")
    row.wait_for()
    cells = [text.strip() for text in row.inner_text().split("\t")]
    assert [cell.split("\n") for cell in cells] == [["anna", "ab12ab12…ab12ab12"], ["com.example.app", "alert · sandbox"], ["offline"], ["1"], ["0"]]


def test_connections_have_lanes(start, open_page, provider, device):
    server = start()
    one = provider(server)
    one.alert(device, "On the lane")
    view = open_page(server, "/?view=connections").live()
    view.page.locator(".lane-bar").wait_for()
    one.alert(device, "Another")
    view.until("() => document.querySelectorAll('.lane-bar').length === 2")
    view.page.get_by_role("button", name="GOAWAY to all").click()
    view.page.get_by_role("dialog").get_by_role("button", name="Send GOAWAY to 1 open connection").click()
    view.page.locator(".lane-mark", has_text="GOAWAY").wait_for()
    view.page.locator(".lane-bar").first.click()
    view.page.locator(".detail-title", has_text="On the lane").wait_for()


@pytest.mark.parametrize("way", ["address", "question"])
def test_a_token_is_read_from_the_address_or_requested(start, open_page, provider, device, way):
    server = start("--admin-token", "open-sesame")
    provider(server).alert(device, "Secret")
    view = open_page(server, "/#token=open-sesame" if way == "address" else "/")
    if way == "question":
        view.page.get_by_role("textbox", name="Token").fill("wrong")
        view.page.get_by_role("button", name="Continue").click()
        view.page.get_by_text("The token is wrong").wait_for()
        view.page.get_by_role("textbox", name="Token").fill("open-sesame")
        view.page.get_by_role("button", name="Continue").click()
        view.complaints.clear()  # The browser itself logs each 401.
    view.live()
    view.row("Secret").wait_for()
    assert "open-sesame" not in view.url and "open-sesame" not in view.page.content()
    assert view.page.evaluate("() => JSON.stringify({...localStorage}) + JSON.stringify({...sessionStorage}) + document.cookie").find("open-sesame") < 0
    if way == "question":
        view.complaints.clear()


def test_a_late_refusal_of_a_former_token_asks_no_second_time(start, open_page, provider, device):
    server = start("--admin-token", "open-sesame")
    provider(server).alert(device, "Secret")
    view = open_page(server, "/")
    held = []

    def hold_one(route):
        if not held and route.request.headers.get("authorization") == "Bearer wrong":
            held.append(route)
        else:
            route.continue_()

    view.page.route("**/api/v1/events*", hold_one)
    token, proceed = view.page.get_by_role("textbox", name="Token"), view.page.get_by_role("button", name="Continue")
    token.fill("wrong")
    proceed.click()
    view.page.get_by_text("The token is wrong").wait_for()
    token.fill("open-sesame")
    proceed.click()
    view.row("Secret").wait_for()
    held[0].continue_()
    view.live()
    assert view.page.get_by_role("dialog").count() == 0
    view.complaints.clear()  # The browser itself logs each 401.


def test_a_push_that_begins_to_match_later_is_listed(start, open_page, provider, device):
    """The search lists the newer push at once, and the older one when its delayed response is sent."""
    server = start()
    server.api("POST", "/rules", {"name": "slow", "when": {"topic": "com.slow"}, "do": {"delay": {"fixed": "3s"}}})
    slow = threading.Thread(target=lambda: provider(server).push(device, {"aps": {"alert": "Slow"}}, topic="com.slow"))
    slow.start()
    server.api("GET", "/pushes/wait", q="is:pending", timeout="10s")
    provider(server).alert(device, "Fast")
    view = open_page(server, "/?q=outcome:accepted").live()
    view.row("Fast").wait_for()
    view.row("Slow").wait_for()
    slow.join()
    assert view.page.locator(".row .row-title").all_inner_texts() == ["Fast", "Slow"]


def test_the_rest_of_the_list_is_loaded_after_a_failed_request(start, open_page, provider, device):
    server = start()
    one = provider(server)
    for number in range(120):
        one.alert(device, f"Push {number}")
    view = open_page(server, "/?view=connect").live()
    view.page.route("**/api/v1/pushes/seqs*", lambda route: route.abort())
    view.page.goto(view.base)
    view.row("Push 119").wait_for()
    view.page.unroute("**/api/v1/pushes/seqs*")
    view.page.get_by_role("listbox", name="Pushes, newest first").evaluate("(list) => list.scrollTo(0, list.scrollHeight)")
    view.page.locator(".row .row-title").get_by_text("Push 0", exact=True).wait_for()
    view.complaints.clear()  # The browser logs the aborted request.


def test_what_others_delete_leaves_the_list_and_the_sidebar_at_once(start, open_page, provider, device):
    server = start()
    one = provider(server)
    view = open_page(server).live()
    one.alert(device, "Before the pause")
    view.await_rows(1)
    view.page.keyboard.press(".")
    server.api("POST", "/reset", {"inbox": True})
    view.await_rows(0)
    view.page.keyboard.press(".")
    # The rest between two counts ends only when it is released.
    view.page.evaluate("""() => {
        const original = setTimeout;
        window.held = [];
        window.setTimeout = (action, ms, ...more) => (ms >= 600 ? window.held.push(action) : original(action, ms, ...more));
    }""")
    one.alert(device, "After the pause")
    view.await_rows(1)
    number = "document.querySelector('[data-group=all] .group-count')?.textContent"
    view.until(f"() => {{ for (const action of window.held.splice(0)) action(); return {number} === '1'; }}")
    server.api("DELETE", "/pushes", all="true")
    view.until(f"() => {number} === '0'")
    view.await_rows(0)
