#!/usr/bin/env python3
"""Measures the web UI in Chromium with 100 000 recorded pushes, while 200 pushes per second arrive: first paint with an empty cache,
frames per second while the list scrolls and while each other view is open, the number of DOM nodes, and the time of a search. And the
report of a run with 20 000 pushes: the time until it is written, its size, and the time until it is usable from disk.

Run it with the client tests' Python on an idle machine: .build/clients/bin/python Benchmarks/page.py
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "Tests/Clients"))

from support import browser  # noqa: E402
from support.server import Server  # noqa: E402

DEVICE = "ab12" * 16
# Notes when the page becomes usable, in milliseconds since the navigation. Playwright looks up to 500 ms later.
READY = """new MutationObserver(() => { if (document.body?.dataset.state === "ready") globalThis.readyAt ??= performance.now(); })
  .observe(document, { subtree: true, childList: true, attributeFilter: ["data-state"] })"""
HEAD = f"{'':30}{'min':>9}{'median':>9}{'max':>9}   target"

# Scrolls the list by 40 pixels per frame for some seconds and returns the number of frames per second.
FRAMES = """(seconds) => new Promise((done) => {
  const list = document.querySelector(".list, .tracks-box, .main");
  const start = performance.now();
  let frames = 0;
  const step = (now) => {
    frames += 1;
    if (list.scrollTop + list.clientHeight >= list.scrollHeight - 1) list.scrollTop = 0;
    list.scrollTop += 40;
    if (now - start < seconds * 1000) requestAnimationFrame(step);
    else done((frames * 1000) / (now - start));
  };
  requestAnimationFrame(step);
})"""

# Types a query into the search field and returns the milliseconds until the list shows its result.
SEARCH = """([query, title]) => new Promise((done, failed) => {
  const field = document.getElementById("search");
  const isShown = () => [...document.querySelectorAll(".row-title")].some((one) => one.textContent === title);
  const start = performance.now();
  field.value = query;
  field.dispatchEvent(new Event("input", { bubbles: true }));
  field.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
  const step = () => {
    if (isShown()) done(performance.now() - start);
    else if (performance.now() - start > 20000) failed(new Error("the search has no result"));
    else requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
})"""


class Row:
    """A measured quantity: its values, its unit and its target; `is_least` for a target that is a minimum."""

    def __init__(self, name, unit, target, is_least=False):
        self.name, self.unit, self.target, self.is_least = name, unit, target, is_least
        self.values = []

    @property
    def verdict(self):
        median = statistics.median(self.values)
        return "ok" if (median >= self.target if self.is_least else median <= self.target) else ("below" if self.is_least else "above")

    def line(self):
        figures = "".join(f"{value:9.0f}" for value in (min(self.values), statistics.median(self.values), max(self.values)))
        return f"{self.name + ', ' + self.unit:30}{figures}   {'>=' if self.is_least else '<='} {self.target:<6g}{self.verdict}"

    def json(self):
        return {"name": self.name, "unit": self.unit, "min": min(self.values), "median": statistics.median(self.values), "max": max(self.values),
                "target": self.target, "verdict": self.verdict}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=ROOT / ".build/dist-parts/system/apns-mock")
    parser.add_argument("--records", type=int, default=100_000, help="recorded pushes (default 100000)")
    parser.add_argument("--load", type=int, default=200, help="pushes per second that arrive (default 200)")
    parser.add_argument("--runs", type=int, default=5, help="runs of each measurement (default 5)")
    parser.add_argument("--check", action="store_true", help="end with 1 if a median misses its target")
    parser.add_argument("--json", metavar="FILE", help="write JSON as well")
    arguments = parser.parse_args()
    if browser.program() is None:
        return print("page: skipped, there is no Chromium on this machine")
    with tempfile.TemporaryDirectory(prefix="apns-mock-bench-") as certs:
        # Some more, so that no record is evicted while it is searched for.
        server = Server(pathlib.Path(arguments.binary).resolve(), certs, "--max-records", str(arguments.records * 2))
        try:
            rows = measure(server, arguments)
        finally:
            server.stop()
        rows += reports(pathlib.Path(arguments.binary).resolve(), certs, arguments.runs)
    print(HEAD)
    for row in rows:
        print(row.line())
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps([row.json() for row in rows], indent=1) + "\n")
    if arguments.check and any(row.verdict != "ok" for row in rows):
        sys.exit("page: not every target is met")


def measure(server, arguments):
    body = pathlib.Path(server.directory) / "body"
    body.write_text('{"aps":{"alert":{"title":"One of many","body":"Text"}}}')
    needles = []
    with browser.running() as running:
        one = browser.Provider(server)
        for number in range(arguments.runs):
            needles.append(f"{number:04x}" * 16)
            one.alert(needles[-1], f"Searched for {number}")
        one.close()
        push(server, body, ["-n", str(arguments.records), "-c", "4", "-m", "100"]).wait()
        load = push(server, body, ["-D", "100000", "-c", "4", "-m", "10", f"--rps={max(1, arguments.load // 4)}"])
        try:
            return figures(running, server, needles, arguments.runs)
        finally:
            load.terminate()
            load.wait()


def push(server, body, options):
    return subprocess.Popen(
        ["h2load", *options, "-d", str(body), "-H", f"authorization: {server.bearer}", "-H", "apns-topic: com.example.app", "-H", "apns-push-type: alert",
         f"{server.url}/3/device/{DEVICE}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def figures(running, server, needles, runs):
    paint = Row("page-paint", "ms", 400)
    frames = Row("page-frames", "/s", 55, is_least=True)
    nodes = Row("page-nodes", "nodes", 3000)
    search = Row("page-search", "ms", 300)
    views = [Row(f"page-{name}", "frames/s", 55, is_least=True) for name in ("overview", "connections")]
    for run in range(runs):
        # A new context has an empty cache.
        view = browser.View(running, server).live()
        view.row("One of many").first.wait_for()
        paint.values.append(view.page.evaluate("() => performance.getEntriesByName('first-contentful-paint')[0].startTime"))
        frames.values.append(view.page.evaluate(FRAMES, 4))
        nodes.values.append(view.page.evaluate("() => document.querySelectorAll('*').length"))
        search.values.append(view.page.evaluate(SEARCH, [f"token:{needles[run]}", f"Searched for {run}"]))
        view.close()
        for row in views:
            view = browser.View(running, server, f"/?view={row.name.removeprefix('page-')}").live()
            view.page.locator("main .panel").wait_for()
            row.values.append(view.page.evaluate(FRAMES, 3))
            nodes.values.append(view.page.evaluate("() => document.querySelectorAll('*').length"))
            view.close()
    return [paint, frames, *views, nodes, search]


def reports(binary, certs, runs):
    written, size, usable = Row("report-written", "ms", 1500), Row("report-size", "MB", 15), Row("report-usable", "ms", 1000)
    server = Server(binary, certs, "--profile", "flaky-503")
    try:
        run = server.request("POST", "/api/v1/runs", {"name": "benchmark"}).json["id"]
        body = pathlib.Path(server.directory) / "body"
        body.write_text('{"aps":{"alert":{"title":"One of many","body":"Text"}}}')
        push(server, body, ["-n", "20000", "-c", "4", "-m", "100"]).wait()
        server.api("PATCH", f"/runs/{run}", {"ended": True})
        path = pathlib.Path(server.directory) / "report.html"
        with browser.running() as running:
            for _ in range(runs):
                began = time.monotonic()
                path.write_bytes(server.request("GET", f"/api/v1/runs/{run}/report").body)
                written.values.append((time.monotonic() - began) * 1000)
                size.values.append(path.stat().st_size / 1e6)
                context = running.browser.new_context(offline=True)
                context.add_init_script(READY)
                page = context.new_page()
                page.goto(path.as_uri(), wait_until="commit")
                page.locator("body[data-state=ready]").wait_for()
                usable.values.append(page.evaluate("readyAt"))
                context.close()
    finally:
        server.stop()
    return [written, size, usable]


if __name__ == "__main__":
    main()
