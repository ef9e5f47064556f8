"""Nothing is lost by accident: selections, Resend, Clear, devices, connections, the form of a rule, copying, drafts."""

import json

import pytest

TOKEN = "740f4707bebcf74f9b7c25d48e3358945f6aa01da5ddb387462c7eaf61bb78ad"


@pytest.fixture
def view(start, open_page, provider, device):
    """A page with five pushes to `device`."""
    server = start()
    one = provider(server)
    for number in range(5):
        one.alert(device, f"Push {number}")
    view = open_page(server).live()
    view.await_rows(5)
    view.server = server
    return view


# The selection


def test_an_action_applies_only_to_pushes_of_the_list(view, provider, device):
    provider(view.server).alert(device, "A zebra")
    view.await_rows(6)
    for number in range(5):
        view.row(f"Push {number}").locator(".row-title").click(modifiers=["Control"])
    assert "5 selected" in view.page.locator(".list-count").inner_text()
    view.page.get_by_label("Search pushes").fill("zebra")
    view.await_rows(1)
    view.until("() => !document.querySelector('.list-count').textContent.includes('selected')")
    assert view.action("Resend").is_disabled()
    view.action("Clear").click()
    dialog = view.page.get_by_role("dialog")
    dialog.get_by_role("button", name="Delete 1 push", exact=True).click()
    view.page.get_by_text("No pushes match.").wait_for()
    assert len(view.server.pushes()) == 5


def test_separate_rows_are_selected_by_keyboard(view):
    view.page.locator(".list").focus()
    keys = view.page.keyboard
    keys.press("j")
    keys.press("x")
    keys.press("j")
    keys.press("j")
    keys.press("x")
    selected = view.page.locator(".row[aria-selected=true] .row-title")
    assert sorted(selected.all_inner_texts()) == ["Push 2", "Push 4"]
    keys.press("x")
    assert selected.all_inner_texts() == ["Push 4"]
    keys.press("x")
    keys.press("Escape")
    assert selected.all_inner_texts() == ["Push 2"]
    keys.press("j")
    assert selected.all_inner_texts() == ["Push 1"], "without marks, moving selects"


def test_clear_deletes_all_attempts_of_a_grouped_push(start, open_page, provider, device):
    server = start("--profile", "flaky-503?rate=1&streak=2")
    one = provider(server)
    assert [one.alert(device, "Again") for _ in range(3)] == [503, 503, 200]
    assert one.alert("ab12" * 16, "Other") == 503
    view = open_page(server, "/?fold=1&q=status:503").live()
    view.row("Again").locator(".row-title").click()
    view.action("Clear").click()
    dialog = view.page.get_by_role("dialog")
    dialog.get_by_text("Delete 2 pushes with 4 attempts?").wait_for()
    dialog.get_by_label("The selected push").check()
    dialog.get_by_text("Delete 1 push with 3 attempts?").wait_for()
    dialog.get_by_role("button", name="Delete 1 push", exact=True).click()
    view.await_rows(1)
    assert [push["seq"] for push in server.pushes()] == [4]
    view.page.get_by_role("button", name="Undo").click()
    view.row("Again").locator(".chip", has_text="2/3 → 200").wait_for()
    assert [(push["attempt"], push["served"]["status"]) for push in server.pushes(after=4)] == [(1, 503), (2, 503), (3, 200)]
    # An attempt that arrives after the question is kept.
    view.row("Other").locator(".row-title").click()
    view.action("Clear").click()
    dialog.get_by_label("The selected push").check()
    dialog.get_by_text("Delete 1 push?").wait_for()
    assert one.alert("ab12" * 16, "Other") == 503
    dialog.get_by_role("button", name="Delete 1 push", exact=True).click()
    view.page.locator(".toast", has_text="Deleted 1 attempt").wait_for()
    assert [push["attempt"] for push in server.pushes(device_token="ab12" * 16)] == [2]


def test_clear_has_nothing_to_delete_in_a_search_without_pushes(view):
    view.page.get_by_label("Search pushes").fill("zebra")
    view.page.get_by_text("No pushes match.").wait_for()
    view.action("Clear").click()
    dialog = view.page.get_by_role("dialog")
    dialog.get_by_text("there is nothing to delete").wait_for()
    assert "0 pushes" not in dialog.inner_text() and dialog.get_by_role("button", name="Delete").is_disabled()
    dialog.get_by_label("All 5 pushes").check()
    assert dialog.get_by_role("button", name="Delete 5 pushes").is_enabled()


# Resend


def test_resend_runs_once_and_can_be_canceled(view):
    view.page.evaluate("""() => {
        const original = window.fetch;
        let sent = 0;
        window.fetch = (url, options) => (String(url).endsWith("/send") && (sent += 1) > 1
          ? new Promise((done) => { window.release = () => done(original(url, options)); }) : original(url, options));
    }""")
    view.action("Select all").click()
    view.action("Resend").dblclick()
    view.page.get_by_text("Sending 2 of 5").wait_for()
    view.until("() => window.release !== undefined")
    assert view.action("Resend").is_disabled()
    view.action("Cancel").click()
    view.page.evaluate("() => window.release()")
    view.page.locator(".toast", has_text="Sent 2 of 5 again: 2 × 200").wait_for()
    assert len(view.server.pushes()) == 7
    view.action("Cancel").wait_for(state="hidden")
    assert not view.action("Resend").is_disabled()


def test_a_double_click_sends_each_push_once(view):
    view.action("Select all").click()
    view.action("Resend").dblclick()
    view.page.locator(".toast", has_text="5 × 200").wait_for()
    view.page.wait_for_timeout(300)
    assert len(view.server.pushes()) == 10


# Undo


def test_clear_can_be_undone(view):
    before = view.server.pushes()
    # The list and the sidebar show it also during a pause.
    view.page.keyboard.press(".")
    number = "(number) => document.querySelector('[data-group=all] .group-count')?.textContent === number"
    view.row("Push 1").locator(".row-title").click()
    view.row("Push 3").locator(".row-title").click(modifiers=["Control"])
    view.action("Clear").click()
    dialog = view.page.get_by_role("dialog")
    assert "undo this for a minute" in dialog.inner_text()
    dialog.get_by_role("button", name="Delete 2 pushes").click()
    view.await_rows(3)
    view.until(number, "3")
    view.action("Undo").click()
    view.await_rows(5)
    view.until(number, "5")
    restored = view.server.pushes()[-2:]
    for record, original in zip(restored, (before[1], before[3]), strict=True):
        for member in ("request", "apns", "connection", "received_at", "attempt", "outcome"):
            assert record[member] == original[member], member


def test_uninstall_and_remove_ask_and_can_be_undone(start, open_page):
    server = start()
    fixtures = {"devices": [{"id": "anna", "apps": [{"bundle_id": "com.example.app", "tokens": {"alert": TOKEN}}]}]}
    assert server.request("PUT", "/api/v1/fixtures", fixtures).status == 200
    view = open_page(server, "/?view=devices").live()
    view.page.get_by_role("button", name="anna").click()
    view.action("Uninstall").click()
    dialog = view.page.get_by_role("dialog")
    assert "1 device token get 410 Unregistered" in dialog.inner_text()
    dialog.get_by_role("button", name="Cancel").click()
    assert server.api("GET", "/devices/anna")["apps"][0]["state"] == "enabled"
    view.action("Uninstall").click()
    dialog.get_by_role("button", name="Uninstall the app").click()
    view.page.locator(".toast", has_text="410").wait_for()
    assert server.api("GET", "/devices/anna")["apps"][0]["state"] == "removed"
    view.action("Undo").click()
    view.page.locator(".toast", has_text="restored").wait_for()
    assert server.api("GET", "/devices/anna")["apps"][0]["state"] == "enabled"
    assert server.api("GET", f"/devices/{TOKEN}")["state"] == "online"
    view.page.get_by_role("button", name="Remove the device").click()
    assert "1 app and 1 device token" in dialog.inner_text()
    dialog.get_by_role("button", name="Remove the device").click()
    view.page.get_by_text("No devices are registered.").wait_for()
    view.page.locator(".has-device").wait_for(state="detached")
    view.action("Undo").first.click()
    view.page.get_by_role("button", name="anna").wait_for()
    assert server.api("GET", f"/devices/{TOKEN}")["bundle_id"] == "com.example.app"
    view.complaints.clear()  # The browser logs the 404 of the removed device.


def test_goaway_to_all_names_the_number_and_asks(start, open_page, provider, device):
    server = start()
    one, other = provider(server), provider(server)
    one.alert(device, "One")
    other.alert(device, "Other")
    view = open_page(server, "/?view=connections").live()
    view.page.locator(".lane-bar").first.wait_for()
    view.action("GOAWAY to all").click()
    dialog = view.page.get_by_role("dialog")
    dialog.get_by_text("Send GOAWAY to 2 open connections? This cannot be undone.").wait_for()
    view.page.keyboard.press("Escape")
    assert server.api("GET", "/connections")["open"] == 2
    view.action("Close all").click()
    dialog.get_by_role("button", name="Close 2 open connections").click()
    view.page.locator(".toast", has_text="Closed: 2 connections").wait_for()


# The form of a rule


def test_a_field_of_the_form_keeps_what_was_written_by_hand(start, open_page, provider, device):
    server = start()
    provider(server).alert(device, "Recorded")
    view = open_page(server, "/?view=faults").live()
    view.page.get_by_text("Add a rule").click()
    text = view.page.get_by_label("JSON with the syntax of a profile file")
    rule = json.loads(text.input_value())
    rule["when"] = {"topic": "com.acme.app", "priority": 5}
    rule["trigger"] = {"every": 3}
    text.fill(json.dumps(rule))
    view.page.get_by_label("Name", exact=True).fill("mine")
    view.page.get_by_label("Probability").fill("0.5")
    view.page.get_by_label("Pushes", exact=True).fill("type:alert")
    assert json.loads(text.input_value()) == rule | {
        "name": "mine", "when": rule["when"] | {"q": "type:alert"}, "trigger": {"every": 3, "probability": 0.5}}
    text.fill("{")
    view.page.get_by_label("Action", exact=True).select_option("delay")
    view.page.get_by_label("By", exact=True).fill("9s")
    view.page.get_by_label("Name", exact=True).fill("other")
    view.page.get_by_text("its JSON is not valid").wait_for()
    assert text.input_value() == "{"
    # Longer than the page waits before it checks what was written.
    view.page.wait_for_timeout(600)
    view.action("write it anew from the fields").click()
    assert json.loads(text.input_value()) == {
        "name": "other", "when": {"q": "type:alert"}, "trigger": {"probability": 0.5}, "ttl": "5m", "do": {"delay": {"fixed": "9s"}}}
    # A repeated member is not lost by a change of a field.
    text.fill('{"name": "a", "name": "b", "do": {"close": {}}}')
    view.page.get_by_label("Name", exact=True).fill("c")
    view.page.get_by_text("a repeated member").wait_for()
    assert text.input_value() == '{"name": "a", "name": "b", "do": {"close": {}}}'
    text.fill(json.dumps(rule))
    view.page.locator(".rule-result", has_text="would have matched").wait_for()
    text.fill("null")
    view.page.locator(".rule-result ul.is-error").wait_for()
    view.complaints.clear()


def test_the_fields_and_the_json_of_a_rule_agree(start, open_page):
    server = start()
    view = open_page(server, "/?view=faults").live()
    view.page.get_by_text("Add a rule").click()
    text, unseen = view.page.get_by_label("JSON with the syntax of a profile file"), view.page.locator(".rule-form p[role=status]")

    def field(label):
        return view.page.get_by_label(label, exact=True)

    def values():
        return [field(label).input_value() for label in ("Name", "Pushes", "Action", "Probability", "Fire at most", "Remove after")]

    def do():
        return json.loads(text.input_value())["do"]

    assert values() == ["outage", "", "respond", "1", "", "5m"] and json.loads(text.input_value())["ttl"] == "5m"
    # The reason belongs to the status, whichever of them is changed.
    for status, reason in (("410", "Unregistered"), ("429", "TooManyRequests"), ("200", ""), ("503", "ServiceUnavailable")):
        field("Status").fill(status)
        assert field("Reason").input_value() == reason
        assert do() == {"respond": {"status": int(status)} | ({"reason": reason} if reason else {})}
    field("Reason").fill("ExpiredToken")
    assert field("Status").input_value() == "410" and do() == {"respond": {"status": 410, "reason": "ExpiredToken"}}
    field("Reason").fill("Own")
    field("Status").fill("418")
    assert do() == {"respond": {"status": 418, "reason": "Own"}}

    text.fill(json.dumps({"name": "slow", "when": {"q": "type:voip", "topic": "x"}, "trigger": {"probability": 0.25, "times": 3, "every": 2}, "do": {"delay": {"fixed": "9s"}}}))
    assert values() == ["slow", "type:voip", "delay", "0.25", "3", ""] and field("By").input_value() == "9s"
    assert unseen.inner_text() == "No field shows when.topic, trigger.every: change it in the JSON."
    # What a field cannot show, it cannot change.
    text.fill(json.dumps({"name": "mixed", "trigger": {"probability": {"from": 0, "to": 1, "over": "1m"}}, "do": {"choose": [{"weight": 1, "close": {}}]}}))
    assert values() == ["mixed", "", "other", "", "", ""] and field("Probability").is_disabled()
    assert unseen.inner_text() == "No field shows trigger.probability, do.choose: change it in the JSON."
    text.fill(json.dumps({"name": "body", "do": {"respond": {"status": 503, "body": "x"}}}))
    assert field("Reason").input_value() == "" and "do.respond.body" in unseen.inner_text()
    field("Name").fill("named")
    assert do() == {"respond": {"status": 503, "body": "x"}}
    text.fill("{")
    assert "until it is valid" in unseen.inner_text()
    text.fill(json.dumps({"name": "last", "do": {"reset_stream": {}}}))
    view.action("Add the rule").click()
    view.action("Remove last").wait_for()
    view.complaints.clear()


def test_a_pattern_that_is_compared_literally_has_a_hint(start, open_page, provider, device):
    server = start()
    provider(server).alert(device, "Recorded")
    view = open_page(server, "/?view=faults").live()
    view.page.get_by_text("Add a rule").click()
    text = view.page.get_by_label("JSON with the syntax of a profile file")
    text.fill(json.dumps({"name": "x", "when": {"topic": "com.acme.*"}, "do": {"respond": {"status": 503, "reason": "ServiceUnavailable"}}}))
    hint = view.page.locator(".rule-result", has_text="is compared literally")
    hint.wait_for()
    assert '"q": "topic:com.acme.*"' in hint.inner_text()


# Copying, and drafts


def test_copying_works_without_a_secure_context(view):
    view.page.evaluate("() => Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    view.row("Push 1").locator(".row-title").click()
    view.action("Copy id").click()
    dialog = view.page.get_by_role("dialog")
    field = dialog.get_by_role("textbox")
    id = view.server.pushes()[1]["apns"]["id"]
    assert field.input_value() == id
    assert view.page.evaluate("() => getSelection().toString() || document.activeElement.value.slice(document.activeElement.selectionStart, document.activeElement.selectionEnd)") == id
    view.page.keyboard.press("Control+c")
    view.page.locator(".toast", has_text="Copied the apns-id").wait_for()
    dialog.wait_for(state="detached")


def test_escape_keeps_the_draft_of_a_push(view):
    view.row("Push 1").locator(".row-title").click()
    view.page.keyboard.press("e")
    dialog = view.page.get_by_role("dialog")
    dialog.get_by_label("apns-collapse-id").fill("kept")
    view.page.keyboard.press("Escape")
    view.page.locator(".toast", has_text="The draft is kept").wait_for()
    view.page.keyboard.press("e")
    assert dialog.get_by_label("apns-collapse-id").input_value() == "kept"
    dialog.get_by_role("button", name="Cancel").click()
    view.page.keyboard.press("e")
    dialog.get_by_label("apns-collapse-id").wait_for()
    assert dialog.get_by_label("apns-collapse-id").input_value() == ""
