"""axe must find no violation in the overview, the findings, the connections, the devices and the faults: light and dark, from 320 to 2560
pixels (`CASES`), and nothing may be wider than the window.
"""

import re
import time

import pytest

from support.browser import accessibility
from support.selection import some

WIDTHS = [320, 390, 768, 1024, 1440, 2560]


def show_frames(page):
    page.locator(".track-head").first.click()
    page.locator(".sequence").wait_for()


def show_device(page):
    page.get_by_role("button", name="anna", exact=True).first.click()
    page.locator(".device-detail .phone").wait_for()


def show_recent(page):
    page.get_by_role("button", name="Recent device tokens").click()
    page.locator(".device").first.wait_for()


def show_channels(page):
    page.get_by_role("button", name="Broadcast channels").click()
    page.locator(".channel-list table").wait_for()


def show_rule(page):
    page.get_by_text("Add a rule").click()
    page.get_by_text("would have matched").wait_for()


def show_commands(page):
    page.get_by_text("How to reproduce").first.click()


VIEWS = {
    "overview": ("/?view=overview", ".tiles", None), "overview of nothing": ("/?view=overview&q=status:999", ".empty-panel", None),
    "findings": ("/?view=findings", ".finding", show_commands), "connections": ("/?view=connections", ".lane-bar", None),
    "frames": ("/?view=connections", ".lane-bar", show_frames), "devices": ("/?view=devices", ".device-table tbody tr", None),
    "device": ("/?view=devices", ".device-table tbody tr", show_device), "recent": ("/?view=devices", ".device-table tbody tr", show_recent),
    "channels": ("/?view=devices", ".device-table tbody tr", show_channels), "faults": ("/?view=faults", ".clock", show_rule),
}


@pytest.fixture(scope="module")
def furnished(binary, certs):
    """A server with devices, channels, findings, a fault rule and two connections."""
    from support.browser import Provider
    from support.server import Server

    server = Server(binary, certs)
    server.api("PUT", "/fixtures", {"devices": [{"id": "anna", "apps": [
        {"bundle_id": "com.example.app", "tokens": {"alert": "aa11" * 16, "liveactivity_start": "bb11" * 40}}]}, {"id": "ben", "state": "offline", "apps": [
        {"bundle_id": "com.example." + "long" * 30, "tokens": {"alert": "aa22" * 16}}]}]})
    server.api("POST", "/channels", {"bundle_id": "com.example.app"})
    one = Provider(server)
    for number in range(3):
        one.push("aa11" * 16, {"aps": {"alert": {"title": f"Hello {number}", "body": "\u202eWorld"}, "badge": number}}, apns_collapse_id="same")
    one.push("bb11" * 40, {"aps": {"timestamp": int(time.time()), "event": "start", "attributes-type": "Ride", "attributes": {}, "content-state": {"eta": "14:05"},
             "alert": {"title": "Off", "body": "we go"}}}, topic="com.example.app.push-type.liveactivity", type="liveactivity")
    for _ in range(3):
        one.push("ab12" * 16, {"aps": {"alert": "x"}}, topic="")
    server.api("POST", "/rules", {"name": "late", "do": {"respond": {"status": 429, "reason": "TooManyRequests"}}})
    one.alert("ab12" * 16, "Faulted")
    one.close()
    two = Provider(server)
    two.alert("cd34" * 16, "Faulted too")
    yield server
    two.close()
    assert server.stop() == 0


# Each view at one width in one color scheme, or at all widths in both if all tests run.
SIZES = [(width, scheme) for scheme in ("light", "dark") for width in WIDTHS]
CASES = [(name, width, scheme) for number, name in enumerate(VIEWS) for width, scheme in some(SIZES, 1, 7 * number)]


@pytest.mark.parametrize(("name", "width", "scheme"), CASES)
def test_no_violation(furnished_view, name, width, scheme):
    path, selector, act = VIEWS[name]
    view = furnished_view
    view.page.set_viewport_size({"width": width, "height": 900})
    view.page.emulate_media(color_scheme=scheme)
    view.visit("/?view=connect")
    view.page.locator(".settings").wait_for()
    view.visit(path)
    if "devices" in path:
        view.page.get_by_role("button", name=re.compile("^Registered")).click()
    view.page.locator(selector).first.wait_for()
    if act:
        act(view.page)
    assert accessibility(view.page) == []
    assert view.page.evaluate("() => document.documentElement.scrollWidth") <= width
    assert view.page.evaluate("""() => { const main = document.getElementById("main"); return main.scrollWidth - main.clientWidth; }""") <= 0


@pytest.mark.parametrize("width", [320, 390])
def test_the_current_view_is_visible_in_the_narrow_navigation(furnished, open_page, width):
    view = open_page(furnished, "/?view=faults", width=width, height=800).live()
    view.page.locator(".group-count").first.wait_for()
    view.until("""() => { const box = document.querySelector(".groups [aria-current]").getBoundingClientRect(); return box.left >= -1 && box.right <= innerWidth + 1; }""")
