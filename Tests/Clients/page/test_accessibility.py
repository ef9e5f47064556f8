"""axe must find no violation in the list, a push and what is opened there, light and dark, wide and narrow: each at one size, or at
all if all tests run.
"""

import pytest

from support.browser import accessibility
from support.selection import some

# axe takes seconds for each of the sizes, and a minute for all of them while other tests keep the machine busy.
pytestmark = pytest.mark.timeout(300)

# The views, and what they show when they are drawn.
VIEWS = {
    "empty search": ("/?q=status:999", ".list .empty, .list-note .empty"), "list": ("/", ".row .row-title"), "preview": ("/?push=1", ".statement"), "payload": ("/?push=1&tab=payload", ".json-line"),
    "headers": ("/?push=1&tab=headers", ".tab-panel tbody tr"), "auth": ("/?push=1&tab=auth", ".tab-panel[data-tab=auth] > *"), "verdict": ("/?push=2&tab=verdict", ".verdict-advice"),
    "timeline": ("/?push=1&tab=timeline", ".lane-bar"), "faulted": ("/?push=3", ".tab-panel[data-seq='3'] .statement"), "silent": ("/?push=4", ".tab-panel[data-seq='4'] .statement"), "connect": ("/?view=connect", ".settings"),
}


@pytest.fixture(scope="module")
def furnished(binary, certs):
    """A server with one push of each outcome, an active fault profile, and devices."""
    from support.browser import Provider
    from support.server import Server

    server = Server(binary, certs)
    one = Provider(server)
    token = "ab12" * 16
    one.push(token, {"aps": {"alert": {"title": "Hello", "body": "\u202eWorld"}, "badge": 2, "unknown": 1}})
    one.push(token, {"aps": {"alert": "x"}}, topic="")
    server.api("PUT", "/profile", {"name": "flaky-503", "params": {"rate": 1}})
    one.alert(token, "Faulted")
    server.api("POST", "/rules", {"name": "late", "do": {"respond": {"status": 429, "reason": "TooManyRequests"}},
               "when": {"topic": "com.other"}})
    one.push(token, {"aps": {"content-available": 1}}, type="background", apns_priority="5")
    server.api("DELETE", "/profile")
    server.api("PUT", "/profile", {"name": "flaky-503", "params": {"rate": 1, "streak": 2}})
    for _ in range(2):
        one.alert("ef56" * 16, "Retried")
    server.api("PUT", "/devices/" + "cd34" * 16, {"state": "unregistered"})
    one.close()
    yield server
    assert server.stop() == 0


# Colors depend on the theme and not on the width, so that dark is checked at two widths.
SIZES = [(320, "light"), (390, "light"), (390, "dark"), (768, "light"), (1024, "light"), (1440, "dark"), (1440, "light"), (2560, "light")]

# What is opened on the page: the view, and the buttons or keys that lead to it.
OPENED = {
    "syntax": ("/", ["Syntax"]), "completion": ("/", ["/", "o"]), "conditions": ("/?q=status:200 !type:voip hello", []),
    "invalid search": ("/?q=stauts:1", []), "time range": ("/", ["Any time"]), "columns": ("/", ["Columns"]), "sorted": ("/?sort=-size", []),
    "grouped": ("/?fold=1", []), "all selected": ("/", ["Select all"]), "clear": ("/", ["Clear"]), "export": ("/", ["Export"]),
    "edit": ("/?push=1", ["Edit and send again"]), "compare": ("/?q=after:3 before:6", ["Select all", "Compare"]),
    "attempts": ("/?push=6", ["Side by side"]), "keys": ("/", ["?"]),
}


def violations(view, number):
    """Returns the violations at one of the sizes, another one for each number, or at all sizes if all tests run; and the sizes at
    which the page is wider than the screen.
    """
    found = []
    for width, scheme in some(SIZES, 1, first=number):
        view.page.set_viewport_size({"width": width, "height": 900})
        view.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        # The list is drawn anew in a frame after its width changed.
        view.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        found += [f"{width} {scheme}: {violation}" for violation in accessibility(view.page)]
        actual = view.page.evaluate("() => document.documentElement.scrollWidth")
        if actual > width:
            found.append(f"{width} {scheme}: the page has {actual} pixels")
    return found


@pytest.mark.parametrize("name", OPENED)
def test_no_violation_in_what_is_opened(furnished, open_page, name):
    path, steps = OPENED[name]
    view = open_page(furnished, path, reduced_motion="reduce").live()
    view.page.locator(".tab-panel > *" if "push=" in path else ".row .row-title").first.wait_for()
    view.page.locator("#banner").wait_for()  # It moves what is below.
    for step in steps:
        if len(step) == 1:
            view.page.keyboard.press(step)
        else:
            view.page.get_by_role("button", name=step, exact=True).click()
    if name in ("clear", "export", "edit", "compare", "attempts", "keys"):
        view.page.get_by_role("dialog").wait_for()
    if name == "completion":
        view.page.locator(".completion-option").first.wait_for()
    assert violations(view, list(OPENED).index(name)) == []
    view.complaints[:] = [text for text in view.complaints if "400" not in text]  # The browser logs the invalid search.


@pytest.mark.parametrize("name", VIEWS)
def test_no_violation(furnished_view, name):
    path, drawn = VIEWS[name]
    furnished_view.visit(path)
    furnished_view.page.locator(drawn).first.wait_for()
    furnished_view.page.locator("#banner").wait_for()
    assert violations(furnished_view, list(VIEWS).index(name)) == []


def test_no_violation_in_the_sheets(furnished, open_page):
    view = open_page(furnished, reduced_motion="reduce").live()
    view.page.get_by_role("button", name="Syntax").click()
    assert accessibility(view.page) == []
    view.page.keyboard.press("Escape")
    view.page.locator(".list").focus()
    view.page.keyboard.press("?")
    view.page.get_by_role("dialog").wait_for()
    assert accessibility(view.page) == []


def test_everything_is_reached_by_the_tab_key(furnished, open_page):
    """From the address bar to the list and into a push by keyboard alone; the focused element is visible as such."""
    view = open_page(furnished, "/?push=1").live()
    view.page.locator(".tab").first.wait_for()
    view.page.keyboard.press("Tab")
    assert view.page.evaluate("() => document.activeElement.className") == "skip-link"
    seen = set()
    for _ in range(80):
        view.page.keyboard.press("Tab")
        seen.add(view.page.evaluate("""() => document.activeElement.getAttribute("role") ?? document.activeElement.id
            ?? document.activeElement.tagName"""))
        outline = view.page.evaluate("""() => { const style = getComputedStyle(document.activeElement);
            const box = getComputedStyle(document.activeElement.closest(".search-box") ?? document.activeElement);
            return document.activeElement === document.body || style.outlineStyle !== "none" || box.boxShadow !== "none"; }""")
        assert outline, view.page.evaluate("() => document.activeElement.outerHTML.slice(0, 200)")
    assert {"listbox", "tab", "tabpanel", "combobox"} <= seen
