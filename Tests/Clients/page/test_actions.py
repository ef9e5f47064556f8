"""The actions of the web UI: Clear, Export, Import, Resend, Compare, and the form that edits a push."""

import csv
import io
import json
import secrets

import pytest


def titles(view):
    return view.page.locator(".row .row-title").all_inner_texts()


@pytest.fixture
def view(start, open_page, provider, device):
    """A page with three pushes to `device` and one to another device."""
    server = start()
    one = provider(server)
    for number in range(3):
        one.push(device, {"aps": {"alert": {"title": f"Push {number}"}}, "n": number, "list": [1, number]}, apns_collapse_id="c")
    one.push("ab12" * 16, {"aps": {"alert": "Other"}}, topic="")
    view = open_page(server).live()
    view.await_rows(4)
    view.server, view.device = server, device
    return view


def choose(view, *names):
    """Selects the rows with these titles."""
    for index, name in enumerate(names):
        view.row(name).locator(".row-title").click(modifiers=["Control"] if index else [])


def test_the_actions_are_visible_buttons(view):
    for name in ("Clear", "Export", "Import", "Resend", "Compare"):
        assert view.action(name).count() == 1 and view.action(name).is_visible()
        assert view.page.get_by_role("button", name=name).count() == 1, "no other button has this word in its name"


# Clear


def test_clear_names_the_number_and_asks(view):
    view.action("Clear").click()
    dialog = view.page.get_by_role("dialog")
    assert "Delete 4 pushes?" in dialog.inner_text()
    dialog.get_by_role("button", name="Cancel").click()
    assert len(view.server.pushes()) == 4
    view.action("Clear").click()
    view.page.keyboard.press("Escape")
    assert dialog.count() == 0 and len(view.server.pushes()) == 4
    view.action("Clear").click()
    dialog.get_by_role("button", name="Delete 4 pushes").click()
    view.page.get_by_text("No pushes yet.").wait_for()
    assert view.server.pushes() == []


def test_clear_keeps_pushes_that_arrive_after_the_question(view, provider, device):
    with view.page.expect_response(lambda response: "kind=" in response.url):
        view.action("Clear").click()
    dialog = view.page.get_by_role("dialog")
    dialog.get_by_text("Delete 4 pushes?").wait_for()
    provider(view.server).alert(device, "Late")
    view.row("Late").wait_for()
    dialog.get_by_role("button", name="Delete 4 pushes").click()
    view.await_rows(1)
    assert len(view.server.pushes()) == 1


def test_clear_during_a_pause_empties_the_list(view):
    view.page.keyboard.press(".")
    view.action("Clear").click()
    view.page.get_by_role("dialog").get_by_role("button", name="Delete 4 pushes").click()
    view.page.get_by_text("No pushes yet.").wait_for()


def test_many_separate_pushes_are_named_in_several_requests(view):
    parts = view.page.evaluate("""async () => (await import("/page/modules/records.js")).seqRanges(Array.from({ length: 3000 }, (_, index) => 100000 + 2 * index))""")
    assert len(parts) > 1 and all(len(part) + 2 * part.count(",") <= 12000 for part in parts)
    assert [int(seq) for part in parts for seq in part.split(",")] == list(range(100000, 106000, 2))


def test_clear_deletes_the_selected_pushes(view):
    choose(view, "Push 0", "Push 2")
    view.action("Clear").click()
    dialog = view.page.get_by_role("dialog")
    dialog.get_by_text("The 2 selected pushes").wait_for()
    dialog.get_by_role("button", name="Delete 2 pushes").click()
    view.await_rows(2)
    assert [push["seq"] for push in view.server.pushes()] == [2, 4]
    view.page.locator(".detail-title").wait_for(state="detached")


def test_clear_deletes_the_pushes_of_a_search(view):
    view.page.get_by_label("Search pushes").fill("status:400")
    view.await_rows(1)
    view.action("Clear").click()
    dialog = view.page.get_by_role("dialog")
    dialog.get_by_label("All 4 pushes").check()
    dialog.get_by_role("button", name="Delete 4 pushes").wait_for()
    dialog.get_by_label("The push that matches status:400").check()
    dialog.get_by_role("button", name="Delete 1 push", exact=True).click()
    view.page.get_by_text("No pushes match.").wait_for()
    assert [push["seq"] for push in view.server.pushes()] == [1, 2, 3]


# Export and import


def export(view, format, scope=None):
    view.action("Export").click()
    dialog = view.page.get_by_role("dialog")
    if scope:
        dialog.get_by_label(scope).check()
    dialog.get_by_label(format).check()
    with view.page.expect_download() as found:
        dialog.get_by_role("button", name="Download").click()
    dialog.wait_for(state="detached")
    return found.value.suggested_filename, found.value.path().read_text()


def test_pushes_are_exported_in_four_formats(view):
    records = [record | {"format": 2} for record in view.server.pushes()]
    name, text = export(view, "NDJSON")
    assert name == "pushes.ndjson" and [json.loads(line) for line in text.splitlines()] == records
    name, text = export(view, "JSON: an array")
    assert name == "pushes.json" and json.loads(text) == records
    name, text = export(view, "HAR")
    assert name == "pushes.har" and len(json.loads(text)["log"]["entries"]) == 4
    name, text = export(view, "CSV")
    assert name == "pushes.csv" and len(list(csv.DictReader(io.StringIO(text)))) == 4


def test_selected_and_filtered_pushes_are_exported(view):
    choose(view, "Push 0", "Push 2")
    _, text = export(view, "NDJSON", "The 2 selected pushes")
    assert [json.loads(line)["seq"] for line in text.splitlines()] == [1, 3]
    view.page.get_by_label("Search pushes").fill(f"push token:{view.device}")
    view.await_rows(3)
    _, text = export(view, "NDJSON", f"The 3 pushes that match push token:{view.device}")
    assert [json.loads(line)["seq"] for line in text.splitlines()] == [1, 2, 3]


def test_an_export_needs_the_token_if_there_is_one(start, open_page, provider, device):
    server = start("--admin-token", "secret")
    provider(server).alert(device, "Secret")
    view = open_page(server, "/#token=secret").live()
    view.await_rows(1)
    _, text = export(view, "NDJSON")
    assert json.loads(text)["seq"] == 1


@pytest.mark.parametrize("format", ["ndjson", "json"])
def test_an_exported_file_is_imported(view, format, tmp_path):
    exported = view.server.request("GET", "/api/v1/export", format=format).body
    file = tmp_path / f"pushes.{format}"
    file.write_bytes(exported)
    with view.page.expect_file_chooser() as chooser:
        view.action("Import").click()
    chooser.value.set_files(file)
    view.page.locator(".toast", has_text="Imported 4 pushes").wait_for()
    view.await_rows(8)
    file.write_text('{"seq": 1}')
    view.page.locator("input[type=file]").set_input_files(file)
    view.page.locator(".toast.is-error", has_text="line 1 of the export").wait_for()
    view.forget_complaint()  # The browser logs the 400.


def test_a_push_is_saved_for_the_simulator(view):
    view.row("Push 1").locator(".row-title").click()
    with view.page.expect_download() as found:
        view.page.get_by_role("button", name=".apns", exact=True).click()
    assert found.value.suggested_filename == "push-2.apns"
    saved = json.loads(found.value.path().read_text())
    assert saved["Simulator Target Bundle"] == "com.example.app" and saved["n"] == 1


# Resend


def test_selected_pushes_are_sent_again(view):
    assert view.action("Resend").is_disabled()
    choose(view, "Push 1")
    view.action("Resend").click()
    view.page.locator(".toast", has_text="Sent again: 200").wait_for()
    view.await_rows(5)
    first, again = view.server.pushes(device_token=view.device)[1], view.server.pushes()[-1]
    for part in ("payload", "device_token"):
        assert again["request"][part] == first["request"][part]
    assert again["apns"]["collapse_id"] == "c" and again["apns"]["topic"] == first["apns"]["topic"]
    choose(view, "Push 0", "Other")
    view.action("Resend").click()
    view.page.locator(".toast", has_text="1 × 400 MissingTopic").wait_for()
    view.await_rows(7)


def test_a_push_is_edited_checked_and_sent(view):
    view.row("Push 1").locator(".row-title").click()
    view.page.get_by_role("button", name="Edit and send again").click()
    dialog = view.page.get_by_role("dialog")
    verdict = dialog.locator(".composer-verdict")
    verdict.get_by_text("APNs would respond 200").wait_for()
    for name in ("apns-topic", "apns-push-type", "apns-priority", "apns-expiration", "apns-collapse-id", "apns-id"):
        assert dialog.get_by_label(name, exact=True).count() == 1
    assert dialog.get_by_label("apns-collapse-id").input_value() == "c"

    # Errors as they are typed: by the server's own rules.
    dialog.get_by_label("apns-priority").fill("7")
    verdict.get_by_text("400 BadPriority").wait_for()
    dialog.get_by_label("apns-priority").fill("5")
    verdict.get_by_text("APNs would respond 200").wait_for()
    dialog.get_by_label("Device token").fill("xyz")
    verdict.get_by_text("400 BadDeviceToken").wait_for()
    token = secrets.token_hex(32)
    dialog.get_by_label("Device token").fill(token)
    payload = dialog.get_by_label("Payload", exact=True)
    payload.fill('{"aps": {\n  "alert": "é" oops}}')
    dialog.locator("#composer-json", has_text="line 2, column 16").wait_for()
    assert payload.get_attribute("aria-invalid") == "true"
    payload.fill(json.dumps({"aps": {"alert": "x" * 5000}}))
    verdict.get_by_text("413 PayloadTooLarge").wait_for()
    dialog.locator(".gauge.is-over").wait_for()
    payload.fill('{"aps":{"alert":"Edited"}}')
    verdict.get_by_text("APNs would respond 200").wait_for()
    assert len(view.server.pushes()) == 4, "a check sends nothing"
    dialog.get_by_label("Other headers").fill("x-own: 1\nx-other: two words")
    dialog.get_by_role("button", name="Send", exact=True).click()
    view.page.locator(".detail-title", has_text="Edited").wait_for()
    sent = view.server.record(token)
    headers = dict(map(tuple, sent["request"]["headers"]))
    assert headers["apns-priority"] == "5" and headers["x-own"] == "1" and headers["x-other"] == "two words"
    assert sent["request"]["payload"] == {"aps": {"alert": "Edited"}}


def test_an_invalid_push_can_be_sent_on_purpose(view):
    view.row("Push 1").locator(".row-title").click()
    view.page.keyboard.press("e")
    dialog = view.page.get_by_role("dialog")
    dialog.get_by_label("apns-topic").fill("")
    dialog.locator(".composer-verdict", has_text="400 MissingTopic").wait_for()
    dialog.get_by_role("button", name="Send", exact=True).click()
    view.page.locator(".badge", has_text="400 MissingTopic").wait_for()


# Compare


def test_two_pushes_are_compared(view):
    assert view.action("Compare").is_disabled()
    choose(view, "Push 0", "Push 2")
    view.action("Compare").click()
    dialog = view.page.get_by_role("dialog")
    dialog.get_by_role("heading", name="Compare #1 and #3").wait_for()
    found = [[" ".join(cell.split()) for cell in row.locator("th, td").all_inner_texts()]
             for row in dialog.get_by_role("region", name="Payload differences").locator("tbody tr").all()]
    assert found == [["/aps/alert/title", "≠ changed", '"Push 0"', '"Push 2"'], ["/n", "≠ changed", "0", "2"], ["/list/1", "≠ changed", "0", "2"]]
    view.page.keyboard.press("Escape")
    choose(view, "Push 0", "Push 1", "Push 2")
    view.action("Compare").click()
    dialog.get_by_role("heading", name="Compare 3 pushes").wait_for()
    assert dialog.locator("thead th").count() == 3
    view.page.keyboard.press("Escape")
    choose(view, "Push 2", "Other")
    view.page.keyboard.press("c")
    dialog.get_by_role("heading", name="Compare #3 and #4").wait_for()
    region = dialog.get_by_role("region", name="Payload differences")
    assert "− removed" in region.inner_text() and "/aps/alert" in region.inner_text()
    assert "MissingTopic" in dialog.get_by_role("region", name="Side by side").inner_text()
    assert "apns-collapse-id" in dialog.get_by_role("region", name="Header differences").inner_text()


@pytest.mark.parametrize(("before", "after", "expected"), [
    ({"a": 1}, {"a": 1}, []), ({"a": 1, "b": 2}, {"b": 2, "a": 1}, []),
    ({"a": 1}, {"b": 1}, [["/a", "removed"], ["/b", "added"]]), ([1, 2, 3], [1, 4], [["/1", "changed"], ["/2", "removed"]]),
    ({"a/b~c": None}, {"a/b~c": {}}, [["/a~1b~0c", "changed"]]), (1, "1", [["", "changed"]]), ({"a": []}, {"a": {}}, [["/a", "changed"]]),
    ({"__proto__x": 1, "toString": 1}, {}, [["/__proto__x", "removed"], ["/toString", "removed"]]),
])
def test_differences_of_json_values(kept_view, before, after, expected):
    found = kept_view.page.evaluate("""async ([before, after]) => (await import("/page/modules/jsondiff.js")).differences(before, after).map((one) => [one.pointer, one.kind])""",
                                    [before, after])
    assert found == expected


def test_attempts_are_shown_side_by_side(start, open_page, provider, device):
    server = start("--profile", "flaky-503?rate=1&streak=2")
    one = provider(server)
    assert [one.alert(device, "Again") for _ in range(3)] == [503, 503, 200]
    view = open_page(server, "/?push=3").live()
    view.page.get_by_role("button", name="Side by side").click()
    dialog = view.page.get_by_role("dialog")
    dialog.locator("thead th").nth(2).wait_for()
    response = dialog.locator("tbody tr", has_text="Response")
    assert response.locator("td").all_inner_texts() == ["503 ServiceUnavailable", "503 ServiceUnavailable", "200"]
    assert "is-different" in response.get_attribute("class")
    assert "is-different" not in (dialog.locator("tbody tr", has_text="Topic").get_attribute("class") or "")


HOSTILE = "<img src=x onerror=\"document.title='owned'\">\u202e"


def test_hostile_payloads_stay_text_in_dialogs(start, open_page, provider, device):
    server = start()
    one = provider(server)
    for name in ("one", "two"):
        one.push(device, json.dumps({"aps": {"alert": HOSTILE + name}, HOSTILE: name}, ensure_ascii=False), apns_collapse_id="<b>c</b>", x_own="<script>1</script>")
    view = open_page(server).live()
    view.await_rows(2)
    view.page.get_by_role("button", name="Select all").click()
    view.action("Compare").click()
    dialog = view.page.get_by_role("dialog")
    dialog.get_by_role("region", name="Payload differences").wait_for()
    assert dialog.locator("img, script, b").count() == 0
    assert dialog.locator(".hidden-char", has_text="RLO").count() >= 2
    view.page.keyboard.press("Escape")
    view.page.locator(".row").first.locator(".row-title").click()
    view.page.get_by_role("button", name="Edit and send again").click()
    dialog.get_by_label("Other headers").wait_for()
    assert dialog.get_by_label("Other headers").input_value() == "x-own: <script>1</script>"
    dialog.get_by_label("apns-topic").fill("<img src=x>")
    dialog.locator(".composer-verdict", has_text="400").wait_for()
    assert dialog.locator("img, script").count() == 0
    view.page.keyboard.press("Escape")
    view.page.get_by_label("Search pushes").fill('"<img src=x onerror=1>"')
    view.page.locator(".condition-text").wait_for()
    assert view.page.locator("img, script:not([src])").count() == 0 and view.page.title() == "apns-mock"
