"""One box that finds anything: numbers, ids, reasons, negation, suggestions by kind, marks in the rows."""

import urllib.parse

import pytest

from support.browser import Provider
from support.server import Server

FIELD = "Search pushes"
DEVICE = "cd34" * 16


def rows(view, number):
    view.until("(number) => document.querySelectorAll('.row .row-title').length === number", number)


def search(view, text, number):
    view.page.get_by_label(FIELD).fill(text)
    view.until("(text) => new URLSearchParams(location.search).get('q') === text", text)
    rows(view, number)


@pytest.fixture(scope="module")
def furnished(binary, certs):
    """A server with three pushes, of which no test changes the number, and a profile that never fires."""
    server = Server(binary, certs, "--profile", "flaky-503?rate=0")
    server.request("PUT", "/api/v1/fixtures", {"apps": [{"bundle_id": "com.example.app", "team_id": "MOCKTEAM01"}], "devices": [{"id": "anna-iphone", "state": "online",
        "apps": [{"bundle_id": "com.example.app", "environment": "sandbox", "tokens": {"alert": DEVICE, "voip": "ef56" * 16}}]}]})
    one = Provider(server)
    one.push(DEVICE, {"aps": {"alert": {"title": "Order shipped", "body": "Parcel 4711"}}})
    one.push(DEVICE, {"aps": {"alert": "Order paid"}})
    one.push(DEVICE, {"aps": {"alert": "No topic"}}, topic="")
    one.close()
    yield server
    assert server.stop() == 0


@pytest.fixture
def view(furnished_view):
    """The page of `furnished` without a search."""
    furnished_view.visit("/")
    rows(furnished_view, 3)
    return furnished_view


def test_numbers_ids_and_reasons_are_found_as_they_are(furnished, view):
    for record in furnished.pushes():
        assert record["apns"]["id_origin"] == "server"
        search(view, record["apns"]["id"], 1)
        view.until("(seq) => document.querySelector('.row').dataset.seq === seq", str(record["seq"]))
        search(view, f"#{record['seq']}", 1)
        view.until("(seq) => document.querySelector('.row').dataset.seq === seq", str(record["seq"]))
    search(view, "MissingTopic", 1)
    search(view, "#1 #3", 2)
    search(view, "#1 order", 1)
    search(view, "-#1", 2)
    search(view, "missingtopic", 1)
    search(view, "400", 1)
    search(view, "rejected", 1)
    search(view, "#3 order", 0)


def test_a_number_that_is_searched_stays_live(start, open_page, provider, device):
    server = start()
    view = open_page(server, "/?q=" + urllib.parse.quote("#1")).live()
    view.page.get_by_text("No pushes match.").or_(view.page.get_by_text("No pushes yet.")).first.wait_for()
    provider(server).alert(device, "Number one")
    rows(view, 1)
    provider(server).alert(device, "Number two")
    view.until("() => document.querySelector('[data-group=all] .group-count')?.textContent === '2'")
    rows(view, 1)


def test_a_hyphen_negates(view):
    search(view, "order -paid", 1)
    search(view, "-status:400", 2)
    search(view, "-MissingTopic", 2)
    search(view, '-"no topic"', 2)
    assert "not" in view.page.locator(".condition-text").inner_text()


def test_suggestions_are_values_of_all_fields_with_their_numbers(view):
    field = view.page.get_by_role("combobox", name=FIELD)
    field.fill("miss")
    option = view.page.locator(".completion-option", has_text="MissingTopic")
    option.wait_for()
    assert option.locator(".quiet").inner_text() == "1"
    assert view.page.locator(".completion-group").all_inner_texts()[-1] == "Reasons"
    option.click()
    assert field.input_value() == "reason:MissingTopic "
    rows(view, 1)
    field.fill("2")
    field.fill("20")
    view.page.locator(".completion-option", has_text="200").click()
    assert field.input_value() == "status:200 "
    rows(view, 2)
    field.fill("exam")
    view.page.locator(".completion-option", has_text="com.example.app").click()
    assert field.input_value() == "topic:com.example.app "
    # A device without its pushes is one without those to each of its tokens.
    field.fill("-anna")
    view.page.locator(".completion-option", has_text="anna-iphone").click()
    assert sorted(field.input_value().split()) == [f"-token:{DEVICE}", f"-token:{'ef56' * 16}"]


def test_a_search_without_results_leads_to_one_with_results(furnished, view):
    note = view.page.locator(".list-note")
    search(view, "missi topic", 0)
    assert note.get_by_role("button", name="reason:MissingTopic").inner_text().split() == ["reason:MissingTopic", "1"]
    # What would find nothing is not offered.
    search(view, "order", 2)
    search(view, "missi paid", 0)
    note.get_by_role("button", name="Remove missi").wait_for()
    assert note.get_by_role("button", name="reason:MissingTopic").count() == note.get_by_role("button", name="Remove paid").count() == 0
    note.get_by_role("button", name="Remove missi").click()
    rows(view, 1)
    search(view, "missi", 0)
    note.get_by_role("button", name="reason:MissingTopic").click()
    rows(view, 1)
    search(view, "anna", 0)
    note.get_by_role("button", name="device anna-iphone").click()
    rows(view, 3)


def test_words_of_a_search_are_marked_in_the_rows(view):
    marked = "() => [...(CSS.highlights.get('search') ?? [])].map((range) => range.toString()).sort().join()"
    search(view, "order", 2)
    view.until(f"() => ({marked})() === 'Order,Order'")
    search(view, "order shipped", 1)
    view.until(f"() => ({marked})() === 'Order,shipped'")
    search(view, "status:200", 2)
    view.until(f"() => ({marked})() === ''")


def test_facets_lead_to_the_values_that_are_not_listed(start, open_page, provider, device):
    server = start()
    one = provider(server)
    for number in range(14):
        one.push(device, {"aps": {"alert": "x"}}, topic=f"com.example.app{number:02}")
    view = open_page(server).live()
    more = view.page.locator('[data-group="more topic"]')
    more.wait_for()
    assert more.inner_text() == "2 more values"
    assert view.page.locator('[data-group^="topic "]').count() == 12
    more.click()
    assert view.page.locator('[data-group^="topic "]').count() == 14
    view.page.locator('[data-group="fewer topic"]').click()
    assert view.page.locator('[data-group^="topic "]').count() == 12
