"""What the web UI shows while a request is open: a slow network, a server that is stopped, and one that is back."""

import re
import signal

import pytest
from playwright.sync_api import expect


def hold(view, pattern):
    """Holds the requests for these addresses; returns a function that sends them."""
    held = []
    is_released = False
    view.page.route(pattern, lambda route: route.continue_() if is_released else held.append(route))

    def release():
        nonlocal is_released
        is_released = True
        while held:
            held.pop().continue_()

    return release


@pytest.mark.parametrize("name, requests, wrong, right", [
    ("connections", "connections", "No connections yet.", "No connections yet."), ("devices", "(devices|channels)", "No devices are registered.", "No device tokens yet."),
    ("runs", "runs", "No runs yet.", "No runs yet."), ("findings", "(status|stats|findings)", "No findings", "No findings"), ("overview", "(status|stats)", "No pushes yet.", "No pushes yet.")])
def test_a_view_says_that_it_loads(start, open_page, name, requests, wrong, right):
    view = open_page(start(), "/?view=connect").live()
    release = hold(view, re.compile(f"/api/v1/{requests}([?]|$)"))
    view.page.goto(f"{view.base}/?view={name}")
    region = view.page.get_by_role("region", name=name.capitalize(), exact=True)
    region.get_by_text("Loading …").wait_for()
    assert wrong not in region.inner_text() and "00:00:00" not in region.inner_text()
    release()
    region.get_by_text(right).first.wait_for()
    assert "Loading" not in region.inner_text()


def three(server, provider, device):
    one = provider(server)
    for text in ("First", "Second", "Third"):
        one.alert(device, text)


def test_a_push_that_loads_is_named_instead_of_the_former_one(start, open_page, provider, device):
    server = start()
    three(server, provider, device)
    view = open_page(server, "/?push=1").live()
    view.page.locator(".tab-panel[data-seq='1'] .statement").wait_for()
    release = hold(view, "**/api/v1/pushes/2")
    view.row("Second").click()
    view.page.get_by_role("heading", name="Loading push #2 …").wait_for(timeout=2000)
    assert view.page.locator(".detail-actions").count() == 0 and "First" not in view.page.locator(".detail").inner_text()
    # A key acts on the push that is loaded, not on the former one.
    view.page.keyboard.press("y")
    assert view.page.locator(".toast").count() == 0
    # Another push is shown at once, and the late one does not replace it.
    view.row("Third").click()
    view.page.locator(".tab-panel[data-seq='3'] .statement").wait_for()
    release()
    view.page.wait_for_timeout(300)
    assert view.page.locator(".tab-panel[data-seq='3']").count() == 1
    view.row("Second").click()
    view.page.locator(".tab-panel[data-seq='2'] .statement").wait_for()


def test_a_push_that_is_chosen_again_is_not_replaced_by_a_late_one(start, open_page, provider, device):
    server = start()
    three(server, provider, device)
    view = open_page(server, "/?push=1").live()
    view.page.locator(".tab-panel[data-seq='1'] .statement").wait_for()
    release = hold(view, "**/api/v1/pushes/2")
    # Both within the time in which the former push stays.
    view.page.evaluate("() => { document.querySelector('.row[data-seq=\"2\"]').click(); document.querySelector('.row[data-seq=\"1\"]').click(); }")
    with view.page.expect_response("**/api/v1/pushes/2"):
        view.page.wait_for_timeout(300)
        release()
    view.page.wait_for_timeout(300)
    assert view.page.locator(".tab-panel[data-seq='1']").count() == 1
    assert view.page.locator(".detail").get_attribute("aria-busy") is None


def test_a_push_that_did_not_load_is_requested_again(start, open_page, provider, device, tmp_path):
    """By the button, and when the server is back."""
    store = ("--store", f"sqlite:{tmp_path / 'inbox.db'}")
    server = start(*store)
    three(server, provider, device)
    view = open_page(server, "/?push=1").live()
    view.page.locator(".tab-panel[data-seq='1'] .statement").wait_for()
    view.page.route("**/api/v1/pushes/2", lambda route: route.abort())
    view.row("Second").click()
    again = view.page.locator(".detail").get_by_role("button", name="Try again")
    again.wait_for()
    assert "Push #2: The server does not respond." in view.page.locator(".detail").inner_text()
    view.page.unroute("**/api/v1/pushes/2")
    again.click()
    view.page.locator(".tab-panel[data-seq='2'] .statement").wait_for()
    assert again.count() == 0
    assert server.stop() == 0
    view.row("Third").click()
    again.wait_for()
    start(*store, admin=f"127.0.0.1:{server.admin_port}")
    view.page.locator(".tab-panel[data-seq='3'] .statement").wait_for()
    assert again.count() == 0
    view.complaints.clear()  # The browser logs each request that failed.


@pytest.mark.parametrize("name", ["connections", "devices", "runs", "faults"])
def test_the_error_of_a_view_ends_when_the_server_is_back(start, open_page, name):
    server = start()
    view = open_page(server, "/?view=connect").live()
    assert server.stop() == 0
    view.page.locator(".bar-live:not(.is-live)").wait_for()
    view.visit(f"/?view={name}")
    problem = view.page.locator(".panel").get_by_text("The server does not respond.").first
    problem.wait_for()
    start(admin=f"127.0.0.1:{server.admin_port}")
    problem.wait_for(state="hidden")
    view.complaints.clear()  # The browser logs each request that failed.


def test_a_server_that_hangs_is_reported(start, open_page, provider, device):
    server = start()
    three(server, provider, device)
    view = open_page(server, "/?push=1").live()
    view.page.locator(".tab-panel[data-seq='1'] .statement").wait_for()
    server.signal(signal.SIGSTOP)
    try:
        view.row("Third").click()
        view.page.get_by_role("heading", name="Loading push #3 …").wait_for(timeout=2000)
        again = view.page.locator(".detail").get_by_role("button", name="Try again")
        again.wait_for(timeout=15_000)
    finally:
        server.signal(signal.SIGCONT)
    again.click()
    view.page.locator(".tab-panel[data-seq='3'] .statement").wait_for()
    view.complaints.clear()


def test_a_missing_push_is_not_requested_again(start, open_page):
    view = open_page(start(), "/?push=4711").live()
    expect(view.page.locator(".detail")).to_contain_text("4711")
    assert view.page.locator(".detail").get_by_role("button", name="Try again").count() == 0
    view.forget_complaint()
