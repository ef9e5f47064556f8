"""Creates the README's screenshots of the web UI: `make screenshots`. Review them before committing."""

import argparse
import io
import pathlib
import sys
import tempfile
import threading
import time

from PIL import Image

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from support import browser  # noqa: E402
from support.server import Server  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOPIC = "com.acme.app"


def device(number):
    return f"{number * 37 % 256:02x}{number * 91 % 256:02x}5e{number:02x}" * 8


def furnish(server):
    """Sends pushes with every kind of content and result; returns the sequence numbers used by the screenshots, by
    name.
    """
    one = browser.Provider(server)
    now = int(time.time())
    activity = {"topic": TOPIC + ".push-type.liveactivity", "type": "liveactivity"}

    def push(number, payload, **more):
        one.push(device(number), payload, **{"topic": TOPIC, **more})
        return server.pushes(device_token=device(number), order="desc", limit=1)[0]["seq"]

    seqs = {}
    push(1, {"aps": {"alert": {"title": "Welcome to Acme", "body": "Your account is ready."}, "sound": "default"}})
    push(2, {"aps": {"content-available": 1}, "sync": "inbox"}, type="background", apns_priority="5")
    seqs["activity"] = push(3, {"aps": {"timestamp": now, "event": "start", "attributes-type": "DeliveryAttributes",
        "attributes": {"order": 4711}, "content-state": {"stop": 3, "of": 12, "driver": "Grace", "eta": "14:05"},
        "alert": {"title": "On its way", "body": "12 stops to go"}}}, **activity)
    push(4, {"aps": {}, "caller_name": "Ada Lovelace"}, topic=TOPIC + ".voip", type="voip")
    push(5, {"aps": {"alert": {"title": "Flash sale", "body": "Everything must go " + "today " * 800}}})
    push(6, {"aps": {"alert": {"title-loc-key": "ORDER_SHIPPED", "loc-args": ["4711"], "loc-key": "PARCEL"}}}, topic="com.acme.shop")
    push(7, {"aps": {"alert": {"title": "שלום עולם", "body": "مرحبا بالعالم"}, "thread-id": "greetings"}}, topic="com.acme.shop")
    server.api("PUT", f"/devices/{device(8)}", {"state": "unregistered"})
    push(8, {"aps": {"alert": {"title": "We miss you", "body": "Come back."}}})
    # A device with two apps, whose notifications collapse, and one that is offline.
    phones = [{"id": name, "state": state, "apps": [
        {"bundle_id": TOPIC, "environment": "sandbox", "tokens": {"alert": device(number)}},
        {"bundle_id": "com.acme.shop", "environment": "sandbox", "tokens": {"alert": device(number + 1)}}]}
        for name, state, number in (("anna-iphone", "online", 40), ("bob-ipad", "offline", 42))]
    apps = [{"bundle_id": bundle, "team_id": "MOCKTEAM01"} for bundle in (TOPIC, "com.acme.shop")]
    server.api("PUT", "/fixtures", {"apps": apps, "devices": phones})
    for badge, text in enumerate(("Packed", "Left the warehouse", "Arrives today at 14:05"), 1):
        for number in (40, 42):
            push(number, {"aps": {"alert": {"title": "Order 4711", "body": text}, "badge": badge}}, apns_collapse_id="4711")
    push(41, {"aps": {"alert": {"title": "Flash sale", "body": "Everything must go today."}, "badge": 1}}, topic="com.acme.shop")
    one.close()

    server.api("PUT", "/profile", {"name": "flaky-503", "params": {"rate": 0.5, "streak": 2}})
    two = browser.Provider(server)
    for number in range(20, 30):
        payload = {"aps": {"alert": {"title": "Order shipped", "body": f"Your parcel 47{number} left the warehouse and arrives tomorrow."},
                   "badge": 3, "sound": "default", "thread-id": "orders"}, "order": 4700 + number}
        for attempt in range(3):
            if two.push(device(number), payload, topic=TOPIC).status_code == 200:
                break
            time.sleep(0.05 + 0.1 * attempt)  # A provider with backoff.
    two.close()
    server.api("POST", "/rules", {"name": "slow-shop", "when": {"topic": "com.acme.shop"}, "do": {"hang": {"for": "40s"}}, "ttl": "10m"})
    three = browser.Provider(server)
    threading.Thread(target=lambda: held(three), daemon=True).start()
    server.api("GET", "/pushes/wait", q="is:pending", timeout="10s")
    faulted = server.pushes(q="is:faulted", attempt=2, order="desc", limit=1)
    seqs["faulted"] = faulted[0]["seq"] if faulted else 1
    return seqs


def held(one):
    """Sends a push whose response is delayed. The request fails when the server is stopped."""
    try:
        one.push(device(31), {"aps": {"alert": {"title": "Back in stock", "body": "The blue one."}}}, topic="com.acme.shop")
    except Exception:  # the type of the error does not matter
        pass


def shots(seqs):
    """Returns name, path, theme and size of each screenshot, and the text of a button to press before it."""
    faulted, activity = seqs["faulted"], seqs["activity"]
    return [
        ("page-light", f"/?push={faulted}", "light", (1360, 860)),
        ("page-dark", f"/?push={faulted}&tab=verdict", "dark", (1360, 860)),
        ("page-payload", f"/?push={faulted}&tab=payload", "light", (1360, 860)),
        ("page-timeline", f"/?push={faulted}&tab=timeline", "dark", (1360, 860)),
        ("page-overview", "/?view=overview", "light", (1360, 860)),
        ("page-findings", "/?view=findings", "light", (1360, 860)),
        ("page-faults", "/?view=faults", "light", (1360, 860)),
        ("page-connections", "/?view=connections", "dark", (1360, 860)),
        ("page-devices", "/?view=devices", "light", (1360, 860), "anna-iphone"),
        ("page-connect", "/?view=connect", "light", (1360, 860)),
        ("page-narrow-list", "/", "light", (390, 780)),
        ("page-narrow-preview", f"/?push={activity}", "dark", (390, 780)),
        ("page-narrow-faults", "/?view=faults", "light", (390, 780)),
    ]


# The tests of a run: the rule that is active, why the test fails, and the number of accepted pushes.
TESTS = [
    ("tests/test_orders.py::test_shipped", None, None, 6),
    ("tests/test_orders.py::test_every_device_is_told", {"name": "down", "do": {"respond": {"status": 503}}, "trigger": {"after": 3}},
     "AssertionError: expected that none is lost\n2 of 5 pushes were not accepted\ntests/test_orders.py:31", 3),
    ("tests/test_tokens.py::test_unregistered_is_forgotten", {"name": "gone", "do": {"respond": {"reason": "Unregistered"}}},
     "AssertionError: the device token is still in the table\ntests/test_tokens.py:58", 0),
    ("tests/test_tokens.py::test_renewal", None, None, 4),
]


def record_run(server):
    """Records a run of which two tests fail; returns its id."""
    server.api("POST", "/reset")
    run = server.request("POST", "/api/v1/runs", {
        "name": "pytest tests", "labels": {"commit": "4f2a91c", "branch": "main"}, "command": "pytest tests --apns-mock-seed 918273"}).json["id"]
    for first, (name, rule, message, accepted) in enumerate(TESTS):
        test = server.request("POST", f"/api/v1/runs/{run}/tests", {"name": name}).json["number"]
        if rule:
            server.api("POST", "/rules", {**rule, "run": run})
        one = browser.Provider(server)
        for number in range(accepted + (2 if rule else 0)):
            one.push(device(60 + 10 * first + number), {"aps": {"alert": {"title": "Order shipped", "body": f"Your parcel {number} left the warehouse."}}}, topic=TOPIC)
        one.close()
        server.api("PATCH", f"/runs/{run}/tests/{test}", {"outcome": "failed" if message else "passed", "message": message})
        server.api("POST", "/reset", {"rules": True})
    server.api("PATCH", f"/runs/{run}", {"ended": True})
    return run


def save_report(server, chromium, folder):
    """Saves the picture of a report that is opened from disk."""
    run = record_run(server)
    path = pathlib.Path(server.directory) / "report.html"
    path.write_bytes(server.request("GET", f"/api/v1/runs/{run}/report").body)
    context = chromium.browser.new_context(offline=True, viewport={"width": 1360, "height": 860}, reduced_motion="reduce")
    page = context.new_page()
    page.goto(path.as_uri())
    page.locator("body[data-state=ready]").wait_for()
    save(page.screenshot(), folder / "report.png")
    print(folder / "report.png")
    context.close()


def save(picture, path):
    """Saves the image with a palette of 256 colors, a third of the size without a visible difference."""
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    image.quantize(256, kmeans=2, dither=Image.Dither.NONE).save(path, optimize=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", default=".build/release/apns-mock")
    parser.add_argument("--into", default="Images", help="folder for the pictures")
    given = parser.parse_args()
    if browser.program() is None:
        sys.exit("no Chromium on this machine: apt-get install chromium")
    folder = ROOT / given.into
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as certs:
        server = Server((ROOT / given.binary).resolve(), certs, "--seed", "918273")
        try:
            seqs = furnish(server)
            with browser.running() as chromium:
                for name, path, theme, (width, height), *buttons in shots(seqs):
                    view = browser.View(chromium, server, path, width=width, height=height, color_scheme=theme, reduced_motion="reduce")
                    view.live().page.locator("main > *").first.wait_for()
                    view.page.locator("#banner").wait_for()
                    view.until("() => document.querySelector('[data-group=all] .group-count')")
                    view.page.wait_for_load_state("load")
                    for button in buttons:
                        view.page.get_by_role("button", name=button).first.click()
                    view.page.wait_for_timeout(600)  # Not a test, so a fixed wait for late rendering is enough.
                    save(view.page.screenshot(), folder / f"{name}.png")
                    print(folder / f"{name}.png")
                    view.close()
                save_report(server, chromium, folder)
        finally:
            server.kill()


if __name__ == "__main__":
    main()
