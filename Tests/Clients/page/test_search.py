"""The search of the web UI: words, conditions, completion, time ranges, errors."""

import re
import urllib.parse

import pytest

from support.browser import Provider
from support.selection import some
from support.server import Server

FIELD = "Search pushes"


def rows(view, number):
    """Waits until the list has this many rows with content."""
    view.until("(number) => document.querySelectorAll('.row .row-title').length === number", number)


def query(view):
    return dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(view.url).query)).get("q", "")


def chips(view):
    return [" ".join(text.split()) for text in view.page.locator(".condition-text").all_inner_texts()]


DEVICE = "cd34" * 16


@pytest.fixture(scope="module")
def furnished(binary, certs):
    """A server with five pushes, of which no test changes the number: three accepted, one of them background, and two rejected. It has
    a profile that never fires, because an example of the syntax names a rule, and a misspelt name is an error.
    """
    server = Server(binary, certs, "--profile", "flaky-503?rate=0")
    push_five(server)
    yield server
    assert server.stop() == 0


@pytest.fixture
def changing(start):
    """A server of a test's own with the same pushes."""
    server = start()
    push_five(server)
    return server


def push_five(server):
    one = Provider(server)
    one.push(DEVICE, {"aps": {"alert": {"title": "Order shipped", "body": "Parcel 4711"}}}, apns_collapse_id="orders")
    one.push(DEVICE, {"aps": {"alert": {"title": "Order paid", "body": "Parcel 4712"}}})
    one.push(DEVICE, {"aps": {"content-available": 1}}, type="background", apns_priority="5")
    one.push(DEVICE, {"aps": {"alert": "No topic"}}, topic="")
    one.push("ab12" * 16, {"aps": {"alert": "Too long " + "x" * 5000}})
    one.close()


@pytest.fixture
def view(furnished_view):
    """The page of `furnished` without a search."""
    furnished_view.visit("/")
    rows(furnished_view, 5)
    yield furnished_view
    furnished_view.page.keyboard.press("Escape")


def test_every_example_of_the_syntax_sheet_is_valid(furnished, view):
    view.page.get_by_role("button", name="Syntax").click()
    examples = view.page.locator(".syntax-example").all_inner_texts()
    assert len(examples) > 15
    for example in examples:
        response = furnished.request("GET", "/api/v1/pushes", search=example)
        assert response.status == 200, f"{example}: {response.body}"
    for example in some(examples, 4):
        view.page.get_by_label(FIELD).fill("")
        view.page.get_by_role("button", name=example, exact=True).click()
        view.until("(text) => new URLSearchParams(location.search).get('q') === text", example)
        assert view.page.locator(".search-problem").is_hidden(), example
    view.page.get_by_role("button", name="Syntax").click()


def test_an_invalid_search_in_the_address_is_explained_and_the_page_is_live(changing, open_page, provider):
    view = open_page(changing, "/?q=stauts:503")
    view.page.locator(".search-problem", has_text="did you mean status?").wait_for()
    view.live()
    rows(view, 5)
    provider(changing).alert(DEVICE, "Still live")
    view.row("Still live").wait_for()
    view.forget_complaint()  # The browser itself logs the 400.


def test_an_error_leaves_the_list_alone(changing, open_page, provider):
    view = open_page(changing, "/?q=text:parcel").live()
    rows(view, 2)
    view.page.get_by_label(FIELD).fill("text:parcel stauts:503")
    view.page.locator(".search-problem", has_text="stauts").wait_for()
    assert view.page.get_by_label(FIELD).get_attribute("aria-invalid") == "true"
    rows(view, 2)
    provider(changing).push(DEVICE, {"aps": {"alert": "Parcel 4713"}})
    rows(view, 3)
    view.page.get_by_label(FIELD).fill("text:parcel status:200")
    view.page.locator(".search-problem").wait_for(state="hidden")
    view.complaints.clear()


def test_words_are_text_that_must_all_occur(furnished, view):
    for text, number in [("order", 2), ("order 4711", 1), ("4711 order", 1), ("parcel !paid", 1), ("order status:400", 0), ('"order sh"', 1)]:
        view.page.get_by_label(FIELD).fill(text)
        view.until("(text) => new URLSearchParams(location.search).get('q') === text", text)
        rows(view, number)
        assert query(view) == text
    assert furnished.request("GET", "/api/v1/pushes", q="order").status == 400, "a word in `q` may be a misspelt condition"


def test_the_field_shows_the_search_of_the_address_although_it_has_the_focus(view):
    view.page.get_by_label(FIELD).fill("order")
    rows(view, 2)
    view.page.evaluate("() => { history.pushState(null, '', '/'); dispatchEvent(new PopStateEvent('popstate')); }")
    assert view.page.get_by_label(FIELD).input_value() == ""
    rows(view, 5)


def test_completion_after_a_quoted_condition(view):
    # In one step: a slow writer's unfinished condition is an invalid search, and the browser logs the 400.
    view.page.get_by_role("combobox", name=FIELD).fill('text:"a b" outc')
    view.page.locator(".completion-option", has_text="outcome").first.wait_for()


def test_completion_by_keyboard(view):
    field = view.page.get_by_role("combobox", name=FIELD)
    keys = view.page.keyboard
    field.fill("topi")
    options = view.page.locator(".completion-option")
    options.first.wait_for()
    assert field.get_attribute("aria-expanded") == "true"
    keys.press("ArrowDown")
    assert options.first.get_attribute("aria-selected") == "true"
    assert field.get_attribute("aria-activedescendant") == options.first.get_attribute("id")
    keys.press("Enter")
    assert field.input_value() == "topic:"
    view.page.locator(".completion-option", has_text="com.example.app").wait_for()
    keys.type("exam")
    view.until("() => document.querySelectorAll('.completion-option').length === 1")
    keys.press("ArrowDown")
    keys.press("Enter")
    assert field.input_value() == "topic:com.example.app "
    assert field.get_attribute("aria-expanded") == "false"
    rows(view, 4)
    keys.type("sta")
    options.first.wait_for()
    keys.press("Escape")
    assert options.count() == 0 and field.input_value() == "topic:com.example.app sta", "Escape closes the suggestions only"


def test_completion_by_mouse_shows_values_of_the_inbox(view):
    field = view.page.get_by_label(FIELD)
    field.fill("top")
    view.page.locator(".completion-option", has_text="topic").first.click()
    view.page.wait_for_timeout(400)  # A slow user: a field without a value must not be searched for.
    assert field.input_value() == "topic:" and query(view) in ("", "top")
    view.page.locator(".completion-option", has_text="com.example.app").click()
    assert field.input_value() == "topic:com.example.app "
    rows(view, 4)
    field.fill(f"token:{DEVICE[:6]}")
    view.page.locator(".completion-option").first.click()
    assert field.input_value().startswith(f"token:{DEVICE}")


def test_conditions_are_chips_that_can_be_removed(view):
    view.visit("/?q=" + urllib.parse.quote('order type:alert !status:413 text:"parcel 47"'))
    rows(view, 2)
    assert chips(view) == ["text order", "type alert", "not status 413", "text parcel 47"]
    view.page.get_by_role("button", name="Remove the condition order").click()
    assert query(view) == 'type:alert !status:413 text:"parcel 47"'
    view.page.get_by_role("button", name="Remove the condition type:alert").click()
    view.page.get_by_role("button", name='Remove the condition text:"parcel 47"').click()
    rows(view, 4)
    assert chips(view) == ["not status 413"]
    view.page.get_by_role("button", name="Remove the condition !status:413").click()
    rows(view, 5)
    assert view.page.locator(".conditions").is_hidden() and query(view) == ""


def test_a_value_in_a_row_adds_a_condition(furnished, open_page):
    view = open_page(furnished, width=1900)
    view.page.evaluate("() => localStorage.setItem('apns-mock.columns', JSON.stringify({shown: ['response', 'title', 'topic', 'token', 'reason', 'connection', 'time']}))")
    view.page.reload()
    for cell, expected, number in (("topic", "topic:com.example.app", 4), ("token", f"token:{DEVICE}", 4), ("reason", "reason:PayloadTooLarge", 1), ("connection", r"connection:c\d+", 5)):
        rows(view, 5)
        row = view.row("Too long") if cell in ("reason", "topic") else view.row("Order shipped")
        row.locator(f".is-cell-{cell} .row-term").click(modifiers=["Alt"])
        view.until("() => location.search !== ''")
        assert re.fullmatch(expected, query(view))
        assert "push=" not in view.url, "the push does not open"
        rows(view, number)
        view.visit("/")


def test_a_value_in_the_details_adds_a_condition(start, open_page, provider, device):
    server = start("--profile", "flaky-503?rate=1&streak=1")
    one = provider(server)
    assert [one.alert(device, "Twice") for _ in range(2)] == [503, 200]
    one.alert("ab12" * 16, "Other")
    view = open_page(server, "/?push=2").live()
    terms = view.page.get_by_role("group", name="Add to the search")
    terms.get_by_role("button", name="attempt").click()
    assert query(view) == "attempt:2"
    rows(view, 1)
    terms.get_by_role("button", name="topic").click()
    assert query(view) == "attempt:2 topic:com.example.app"
    terms.get_by_role("button", name="token").click()
    assert query(view).endswith(f"token:{device}")
    assert "push=" in view.url, "the push stays open"


def test_time_ranges(changing, open_page, provider):
    changing.api("POST", "/clock/advance", {"by": "2h"})
    provider(changing).alert(DEVICE, "Later")
    view = open_page(changing).live()
    rows(view, 6)
    view.page.get_by_role("button", name="Any time").click()
    view.page.get_by_role("button", name="Last 5 minutes").click()
    rows(view, 1)
    assert query(view) == "since:-5m"
    view.page.get_by_role("button", name="Last 5 minutes").click()
    view.page.get_by_role("button", name="Last 24 hours").click()
    rows(view, 6)
    view.page.get_by_role("button", name="Last 24 hours").click()
    # Without another value the range begins an hour ago, by the clock of the server.
    view.page.get_by_role("group", name="Time range").get_by_role("button", name="Apply").click()
    rows(view, 1)
    assert re.fullmatch(r'since:"?20\d\d-\d\d-\d\dT[\d:.]+Z"?', query(view))
    view.page.get_by_role("button", name="Time range").click()
    end = view.page.get_by_label("From").input_value()
    view.page.get_by_label("From").fill("")
    view.page.get_by_label("To", exact=True).fill(end)
    view.page.get_by_role("button", name="Apply").click()
    rows(view, 5)
    view.page.get_by_role("button", name="Remove the condition until").click()
    rows(view, 6)
