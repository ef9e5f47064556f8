"""A headless Chromium of this machine, driven by Playwright, looking at the page of a server."""

import contextlib
import json
import os
import pathlib
import shutil
import ssl

import httpx

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome")
PLACES = (
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
PATIENCE = 20_000  # milliseconds; a loaded machine draws slowly
# `--no-sandbox`: the browser's sandbox refuses to run as root, and what it shows here is ours.
FLAGS = ["--no-sandbox", "--disable-dev-shm-usage", "--force-color-profile=srgb"]


def program():
    """The browser's path; None if there is none."""
    found = (shutil.which(name) for name in NAMES)
    return next((path for path in found if path), None) or next(
        (path for path in PLACES if os.access(path, os.X_OK)), None)


@contextlib.contextmanager
def running():
    """A browser that ends with the block. Playwright keeps an event loop while it runs: nothing else may want one."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program(), args=FLAGS)
        yield browser
        browser.close()


class View:
    """The page of a server in a window of its own. What the browser complains about is kept in `complaints`."""

    def __init__(self, browser, server, path="/", *, width=1440, height=900, **context):
        context.setdefault("color_scheme", "light")
        self.context = browser.new_context(viewport={"width": width, "height": height}, **context)
        self.context.set_default_timeout(PATIENCE)
        self.base = f"http://127.0.0.1:{server.admin_port}"
        self.page = self.context.new_page()
        self.complaints = []
        self.foreign = []
        self.page.on("console", lambda message: message.type in ("error", "warning")
                     and self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: request.url.startswith(self.base) or self.foreign.append(request.url))
        self.page.on("dialog", lambda dialog: (self.complaints.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        self.page.goto(self.base + path)

    def live(self):
        """Waits until the page follows what happens."""
        self.page.locator(".bar-live.is-live").wait_for()
        return self

    def row(self, text):
        """The rows with this text."""
        return self.page.locator(".row", has_text=text)

    def until(self, expression, argument=None):
        """Waits until a JavaScript expression is true."""
        self.page.wait_for_function(expression, arg=argument)

    def close(self):
        self.context.close()


class Provider:
    """A provider library over one HTTP/2 connection: httpx."""

    def __init__(self, server):
        self.server = server
        self.client = httpx.Client(
            http2=True, verify=ssl.create_default_context(cafile=server.ca), base_url=server.url, timeout=30)

    def push(self, device, payload, *, topic="com.example.app", type="alert", **headers):
        """The answer. `payload` is a text or what JSON can say; header names are written with `_`."""
        text = payload if isinstance(payload, str) else json.dumps(payload, ensure_ascii=False)
        sent = {"authorization": self.server.bearer, "apns-topic": topic}
        if type:
            sent["apns-push-type"] = type
        sent.update({name.replace("_", "-"): value for name, value in headers.items()})
        return self.client.post(f"/3/device/{device}", headers=sent, content=text.encode())

    def alert(self, device, title, body="A text"):
        """Pushes an alert; the status."""
        return self.push(device, {"aps": {"alert": {"title": title, "body": body}}}).status_code

    def close(self):
        self.client.close()


def accessibility(page):
    """What axe finds wrong with the page as it is now: a line each. The script runs beside the page's own, through the
    driver, so its policy stays as it is."""
    import axe_playwright_python

    script = pathlib.Path(axe_playwright_python.__file__).parent / "axe.min.js"
    page.evaluate(script.read_text())
    found = page.evaluate("""() => axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa",
        "best-practice"]})""")
    return [f"{one['id']}: {one['help']}: {node['html'][:200]} {node.get('failureSummary', '')[:300]}"
            for one in found["violations"] for node in one["nodes"]]
