"""The machine's headless Chromium, controlled by Playwright, showing the page of a server."""

import collections
import contextlib
import json
import os
import pathlib
import shutil
import ssl
import time

import httpx

# The headless shell is the same engine without the windows of a browser: it starts fewer processes, and measured on two cores
# its tests take half as long.
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome")
PLACES = (
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
TIMEOUT = 20_000  # milliseconds; rendering is slow on a loaded machine
# `--no-sandbox`: the browser's sandbox refuses to run as root, and the browser only shows our own page.
# `--renderer-process-limit`: the pages of a context share a process, which a new page need not start.
FLAGS = ["--no-sandbox", "--disable-dev-shm-usage", "--force-color-profile=srgb", "--renderer-process-limit=1"]


def program():
    """Returns the browser's path, or None if there is no browser."""
    found = (shutil.which(name) for name in NAMES)
    return next((path for path in found if path), None) or next(
        (path for path in PLACES if os.access(path, os.X_OK)), None)


@contextlib.contextmanager
def running():
    """Runs a browser for the duration of the block. While it runs, Playwright occupies the thread's event loop."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = Browser(driver.chromium.launch(executable_path=program(), args=FLAGS))
        yield browser
        browser.close()


class Browser:
    """A browser that keeps its pages for other tests. Creating one, and the process that renders it, takes longer than to load it."""

    def __init__(self, browser):
        self.browser = browser
        self.unused = collections.defaultdict(list)

    def page(self, settings):
        """Returns a page in a context of its own with these settings."""
        if unused := self.unused[repr(settings)]:
            return unused.pop()
        context = self.browser.new_context(**settings)
        context.set_default_timeout(TIMEOUT)
        return context.new_page()

    def release(self, page, settings):
        """Empties a page, so that another test can use it."""
        page.unroute_all(behavior="ignoreErrors")
        page.goto("about:blank")
        page.context.clear_cookies()
        self.unused[repr(settings)].append(page)

    def close(self):
        self.browser.close()


class View:
    """The page of a server in its own window. The browser's errors and warnings are kept in `complaints`, requests
    to other origins in `foreign`.
    """

    def __init__(self, browser, server, path="/", *, width=1440, height=900, color_scheme="light", reduced_motion="no-preference",
                 **settings):
        self.browser, self.settings = browser, settings
        self.base = f"http://127.0.0.1:{server.admin_port}"
        self.page = browser.page(settings)
        self.context = self.page.context
        self.page.set_viewport_size({"width": width, "height": height})
        self.page.emulate_media(color_scheme=color_scheme, reduced_motion=reduced_motion, forced_colors="none")
        self.complaints = []
        self.foreign = []
        self.handlers = {
            "console": lambda message: message.type in ("error", "warning") and self.complaints.append(message.text),
            "pageerror": lambda error: self.complaints.append(str(error)),
            "request": lambda request: request.url.startswith(self.base) or self.foreign.append(request.url),
            "dialog": lambda dialog: (self.complaints.append(f"dialog: {dialog.message}"), dialog.dismiss()),
        }
        for event, handler in self.handlers.items():
            self.page.on(event, handler)
        self.page.goto(self.base + path)

    def visit(self, path):
        """Changes the address as the browser's Back button does: the page is not loaded again. A field loses the focus, because
        the page would soon search for what was written into it.
        """
        self.page.evaluate("""(path) => {
            document.activeElement.blur();
            history.pushState(null, "", path);
            dispatchEvent(new PopStateEvent("popstate"));
        }""", path)

    def forget_complaint(self):
        """Waits until the browser has logged the error that the test provokes, and forgets it."""
        deadline = time.monotonic() + 5
        while not self.complaints:
            assert time.monotonic() < deadline, "the browser has logged nothing"
            self.page.wait_for_timeout(20)
        self.complaints.clear()

    def live(self):
        """Waits until the page receives live updates."""
        self.page.locator(".bar-live.is-live").wait_for()
        return self

    def row(self, text):
        """Returns the rows with this text."""
        return self.page.locator(".row", has_text=text)

    @property
    def url(self):
        """The address now. `page.url` of Playwright follows changes by scripts with a delay."""
        return self.page.evaluate("() => location.href")

    def action(self, name):
        """The button with exactly this name."""
        return self.page.get_by_role("button", name=name, exact=True)

    def await_rows(self, number):
        """Waits until the list has this many rows with their data."""
        self.until("(number) => document.querySelectorAll('.row .row-title').length === number", number)

    def until(self, expression, argument=None):
        """Waits until a JavaScript expression is true."""
        self.page.wait_for_function(expression, arg=argument)

    def close(self):
        """Closes the page and deletes what it has stored."""
        self.page.evaluate("() => { localStorage.clear(); sessionStorage.clear(); }")
        for event, handler in self.handlers.items():
            self.page.remove_listener(event, handler)
        self.browser.release(self.page, self.settings)


class Provider:
    """A provider library over one HTTP/2 connection: httpx."""

    def __init__(self, server):
        self.server = server
        self.client = httpx.Client(
            http2=True, verify=ssl.create_default_context(cafile=server.ca), base_url=server.url, timeout=30)

    def push(self, device, payload, *, topic="com.example.app", type="alert", **headers):
        """Sends a push and returns the response. `payload` is a string or a JSON value; header names are written
        with `_`.
        """
        text = payload if isinstance(payload, str) else json.dumps(payload, ensure_ascii=False)
        sent = {"authorization": self.server.bearer, "apns-topic": topic}
        if type:
            sent["apns-push-type"] = type
        sent.update({name.replace("_", "-"): value for name, value in headers.items()})
        return self.client.post(f"/3/device/{device}", headers=sent, content=text.encode())

    def alert(self, device, title, body="A text"):
        """Sends an alert and returns the status."""
        return self.push(device, {"aps": {"alert": {"title": title, "body": body}}}).status_code

    def close(self):
        self.client.close()


def accessibility(page):
    """Returns axe's accessibility violations in the page's current state, one string each. The script is injected
    through the driver, so the page's content security policy stays unchanged.
    """
    import axe_playwright_python

    if not page.evaluate("() => 'axe' in window"):
        page.evaluate((pathlib.Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text())
    # Only the violations are returned: all results are megabytes.
    return page.evaluate("""async () => {
        const { violations } = await axe.run(document, {resultTypes: ["violations"], runOnly: ["wcag2a", "wcag2aa", "wcag21a",
            "wcag21aa", "wcag22aa", "best-practice"]});
        return violations.flatMap(({ id, help, nodes }) => nodes.map(({ html, failureSummary }) =>
            `${id}: ${help}: ${html.slice(0, 200)} ${(failureSummary ?? "").slice(0, 300)}`));
    }""")
