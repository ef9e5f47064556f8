"""Runs the commands and code that the documentation shows, and checks that its links lead somewhere."""

import functools
import http.server
import json
import re
import shlex
import subprocess
import sys
import threading

import pytest

from support import ROOT, drivers, tokens
from support.documents import PAGES, blocks
from support.incidents import name_of_test, sections
from support.server import clean_environment, run

LIBRARIES = {
    "A2": "a2", "APNSwift": "APNSwift", "Aioapns": "aioapns", "AndrewBarbaAPNS2": "AndrewBarba/apns2",
    "Apns4erl": "apns4erl", "ApnsPHP": "ApnsPHP", "Apnotic": "apnotic", "CorePush": "CorePush", "Curl": "curl",
    "CurlCffi": "curl_cffi",
    "DotAPNS": "dotAPNS", "FitomadAPNS": "fitomad/apns-dotnet", "Gaurun": "gaurun", "Gorush": "gorush",
    "Httpx": "httpx", "Kalyke": "kalyke", "NodeAPN": "@parse/node-apn", "NodeHTTP2": "Node http2",
    "PHPCurl": "PHP curl", "Pigeon": "pigeon", "Pushok": "pushok", "Pushy": "Pushy", "PyAPNs2": "PyAPNs2",
    "Rpush": "rpush", "SideshowAPNS2": "sideshow/apns2",
}


# Documents outside of the documentation whose links are checked.
DOCUMENTS = [
    "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "Benchmarks/README.md", "Certs/README.md",
    "FaultProfiles/README.md", "Images/README.md", "Distribution/README.md",
    *(str(path.relative_to(ROOT)) for path in sorted(ROOT.glob("Clients/**/README.md"))),
    *(str(path.relative_to(ROOT)) for path in sorted(ROOT.glob("Examples/**/README.md"))),
]


def section(title):
    """Returns one section of the README."""
    return (ROOT / "README.md").read_text().split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


def test_the_first_push_of_the_readme(start, paste):
    server = start()
    words = paste(server, "\n".join(blocks(section("A first push"), "sh")), "sh", "-e")
    first, second = server.pushes()
    assert first["accepted"] is True and second["accepted"] is True
    assert "HTTP/2 200" in words
    assert words.count(first["apns"]["id"]) >= 3, "`send`, `ls` and `get` print it"
    assert words.count(second["request"]["device_token"]) >= 1, "`ls` prints it"


def test_the_test_suite_lines_of_the_readme(paste):
    lines = blocks(section("In a test suite"), "sh")[0]
    assert paste(None, lines + "test -s ports.json; kill $!; wait $! && echo ended\n", "sh", "-e").endswith("ended\n")


@pytest.mark.parametrize("number", range(3), ids=["by token", "by certificate", "nghttp"])
def test_the_lines_for_the_shell(start, paste, number):
    server = start()
    drivers.tool("nghttp" if number == 2 else "curl")
    paste(server, blocks((PAGES / "Clients" / "Curl.md").read_text(), "sh")[number], "sh", "-e")
    (push,) = server.pushes()
    assert push["accepted"] is True


PROGRAMS = [
    ("Httpx", "python", lambda: [sys.executable], ""), ("Aioapns", "python", lambda: [sys.executable], ""),
    ("CurlCffi", "python", lambda: [sys.executable], ""), ("NodeHTTP2", "js", lambda: [drivers.tool("node")], ".mjs"), ("PHPCurl", "php", drivers.php_with_curl, ""),
]


@pytest.mark.parametrize(("page", "language", "command", "suffix"), PROGRAMS, ids=[row[0] for row in PROGRAMS])
def test_the_lines_of_a_page_push(start, paste, page, language, command, suffix):
    server = start()
    paste(server, blocks((PAGES / "Clients" / f"{page}.md").read_text(), language)[0], *command(), suffix=suffix)
    (push,) = server.pushes()
    assert push["accepted"] is True


def test_the_lines_for_pyapns2_push(start, paste):
    folder = drivers.apns2_folder()
    server = start()
    text = blocks((PAGES / "Clients" / "PyAPNs2.md").read_text(), "python")[0]
    assert paste(server, text, sys.executable, PYTHONPATH=str(folder), SSL_CERT_FILE=server.ca) == "accepted\n"
    (push,) = server.pushes()
    assert push["accepted"] is True


def test_the_lines_for_kalyke_push(apple_server, paste):
    pytest.importorskip("kalyke", reason="kalyke needs Python 3.11 or newer")
    text = blocks((PAGES / "Clients" / "Kalyke.md").read_text(), "python")[0]
    apns_id = paste(
        None, text, *apple_server.way.hosts_file, sys.executable, SSL_CERT_FILE=apple_server.ca).strip()
    (push,) = apple_server.pushes(apns_id=apns_id)
    assert push["accepted"] is True


def test_the_lines_on_clock_and_devices(start, paste):
    server = start()
    words = paste(server, "\n".join(blocks((PAGES / "ClockAndDevices.md").read_text(), "sh")), "sh", "-e")
    assert '"unregistered"' in words and "2030-01-01T13:01:00" in words, words
    assert server.api("GET", "/devices")["items"] == []
    assert server.api("GET", "/clock")["mode"] == "real"


def test_the_lines_on_load_tests(paste):
    (lines,) = blocks((PAGES / "LoadTests.md").read_text(), "sh")
    words = paste(None, lines + "wait\n", "sh", "-e")
    assert 'apns_mock_pushes_total{outcome="accepted",status="200",reason=""} 2\n' in words


@pytest.fixture
def curl_home(tmp_path):
    """A folder with settings for curl, which make each curl of a pasted text print its request and its status."""
    folder = tmp_path / "curl"
    folder.mkdir()
    (folder / ".curlrc").write_text('write-out = "\\n<%{method} %{url_effective} %{http_code}>\\n"\n')
    return folder


def curl_responses(words):
    """Returns (method, path, status, body) of each curl in the output of a pasted text. A body is one line."""
    return [(method, path, int(status), body) for body, method, path, status in re.findall(
        r"^(.*)\n<(\w+) https?://[^/]*(/\S*) (\d+)>$", words, re.MULTILINE)]


def test_the_lines_on_devices(start, paste, curl_home):
    server = start()
    page = (PAGES / "Devices.md").read_text()
    words = paste(server, "\n".join(blocks(page, "sh")), "sh", "-e", CURL_HOME=str(curl_home))
    apns_id = re.search(r"^id=(\S+)$", page, re.MULTILINE)[1]
    delivery, shown = curl_responses(words)
    assert delivery[:3] == ("GET", f"/api/v1/pushes/{apns_id}/delivery", 200)
    delivery, (sample,) = json.loads(delivery[3]), map(json.loads, blocks(page, "json"))
    assert list(delivery) == list(sample) and delivery["apns_id"] == apns_id and delivery["device"] == "anna"
    assert delivery["state"] == "Delivered to Device" and delivery["message"] is None
    assert [event["state"] for event in delivery["events"]] == ["Received by APNs", "Delivered to Device"]
    assert re.search(rf"^{delivery['seq']}\t.*\t200\t.*\t{apns_id}$", words, re.MULTILINE), "the line of `ls`"
    assert shown[:3] == ("GET", "/api/v1/devices/anna/notifications", 200)
    shown = json.loads(shown[3])
    assert [item["apns_id"] for item in shown["items"]] == [apns_id], "the push is shown"
    assert server.api("GET", "/devices/anna/notifications")["items"][1:], "those for the follower as well"
    (sample,) = blocks((PAGES / "Devices.md").read_text(), "yaml")
    assert server.request("POST", "/api/v1/fixtures/lint", sample.encode(), headers={
        "content-type": "application/yaml"}).status == 200


@pytest.mark.parametrize("listener", ["apns", "manage"])
def test_the_lines_on_broadcasts(start, paste, curl_home, listener):
    """The lines with curl are run in two parts, because a reader sets `channel` to what the first one has printed."""
    page = (PAGES / "Broadcast.md").read_text()
    serve, calls, commands, inbox = blocks(page, "sh")
    flags = shlex.split(re.sub(r":\d+", ":0", serve).removeprefix("apns-mock serve "))
    assert (flags[0], len(flags)) == ("--apns", 4)
    server = start(*flags[2:], apns=flags[1:2])
    calls, replaced = re.subn(r"^port=8443$", f"port={server.facts[listener][0]['port']}", calls, flags=re.MULTILINE)
    assert replaced == 1
    define, create, *others = calls.split("\n\n")
    words = paste(server, define + "\n" + create, "sh", "-e", CURL_HOME=str(curl_home))
    channel = re.search(r"^apns-channel-id: (\S+)\r?$", words, re.MULTILINE)[1]
    assert "HTTP/2 201" in words
    responses = curl_responses(words)
    responses += curl_responses(
        paste(server, "\n".join([define, f"channel={channel}", *others]), "sh", "-e", CURL_HOME=str(curl_home)))

    app = "com.example.app"
    assert [response[:3] for response in responses] == [
        ("POST", f"/1/apps/{app}/channels", 201), ("GET", f"/1/apps/{app}/all-channels", 200),
        ("GET", f"/1/apps/{app}/channels", 200), ("POST", f"/4/broadcasts/apps/{app}", 200),
        ("DELETE", f"/1/apps/{app}/channels", 204)]
    shown = re.findall(r"^# [^:]+: (\d+)(?: (\{.*\}))?", calls, re.MULTILINE)
    assert [(int(status), body.replace("…", channel)) for status, body in shown] == [
        response[2:] for response in responses], "as the comments say"

    words = paste(server, commands, "sh", "-e")
    assert len(set(re.findall(r"[A-Za-z0-9+/]{22}==", words)) - {channel}) == 1, "the list has the new channel"
    assert server.api("GET", "/channels")["items"] == [], "and the last command removes it"

    words = paste(server, inbox, "sh", "-e", CURL_HOME=str(curl_home))
    ((method, path, status, body),) = curl_responses(words)
    assert (method, path, status) == ("GET", "/api/v1/pushes?kind=channel", 200)
    assert [(one["kind"], one["served"]["status"]) for one in json.loads(body)["items"]] == [
        ("channel", code) for code in (201, 200, 200, 204)]
    (record,) = server.pushes(kind="broadcast")
    assert record["request"]["payload"]["aps"]["content-state"] == {"score": 1}
    assert re.fullmatch(rf"{record['seq']}\t.*\t200\t.*\t{record['apns']['id']}\n", words.split(body)[0]), words


def test_the_lines_on_faults(start, paste, tmp_path):
    server = start()
    words = paste(server, "\n".join(blocks((PAGES / "Faults.md").read_text(), "sh")), "sh", "-e", "-x")
    assert "chaos-mix" in words and "1000 pushes" in words and "feedfacefeedface4100" in words, words
    assert server.api("GET", "/profile")["name"] == "healthy"
    assert server.api("GET", "/rules")["items"] == []
    table = (PAGES / "Faults.md").read_text().split("## A rule")[0]
    shown = re.findall(r"^\| `([a-z0-9-]+)` \|", table, re.MULTILINE)
    assert shown == [item["name"] for item in server.api("GET", "/profiles")["items"]]


def test_the_lines_on_verify(start, paste, tmp_path):
    server = start()
    words = paste(server, "\n".join(blocks((PAGES / "Verify.md").read_text(), "sh")), "sh", "-e")
    assert "✓ welcome push: expected exactly 1 accepted, found 1" in words, words
    assert "<testsuites" in (tmp_path / "verify.xml").read_text()


def test_the_lines_on_certificates_and_keys(start, paste, tmp_path):
    server = start(certs=tmp_path / "own")
    (tmp_path / "AuthKey_ABC123DEFG.p8").write_text(tokens.foreign_key())
    page = blocks((PAGES / "CertificatesAndKeys.md").read_text(), "sh")
    lines = [block for block in page if block.startswith("apns-mock")]
    assert len(lines) == 3
    words = paste(server, "\n".join(lines), "sh", "-e")
    assert "ABC123DEFG" in words and "com.acme.app" in words
    assert words.splitlines()[-1].count(".") == 2, "the provider token"
    assert [key["key_id"] for key in server.api("GET", "/keys")["items"]] == [server.key_id], "added and removed"


def test_the_lines_on_the_inbox(start, paste, tmp_path):
    server = start()
    words = paste(server, "\n".join(blocks((PAGES / "Inbox.md").read_text(), "sh")), "sh", "-e")
    assert "curl -i --http2" in words and '"served":{"status":200}' in words and '"served":{"status":410}' in words
    assert "Simulator Target Bundle" in (tmp_path / "order.apns").read_text()
    assert len((tmp_path / "run.ndjson").read_text().splitlines()) == 2
    assert server.pushes() == []


def test_every_query_of_the_page_is_one(server):
    tables = [part for part in (PAGES / "Inbox.md").read_text().split("\n\n") if part.startswith("| ")]
    queries = [row.split("|")[1] for row in tables[0].splitlines()[2:]]
    documented = [query for row in queries for query in re.findall(r"`([^`]+)`", row)]
    assert len(documented) > 15
    for query in documented:
        response = server.request("GET", "/api/v1/pushes", q=query)
        assert response.status == 200, (query, response.body)


def test_the_lines_on_waiting(start, paste):
    server = start()
    paste(server, "\n".join(blocks((PAGES / "Waiting.md").read_text(), "sh")), "sh", "-e")
    assert server.pushes(status=410)


def test_the_page_on_incidents_has_a_test_for_each_thread():
    files = (ROOT / "Tests" / "Clients" / "incidents").glob("test_*.py")
    tests = re.findall(r"^def (test_\w+)\(incident", "".join(path.read_text() for path in files), re.MULTILINE)
    assert sorted(tests) == sorted(map(name_of_test, sections()))
    assert len(tests) == 39
    for thread, text in sections().items():
        assert blocks(text, "sh") and "good provider" in text, thread


def test_the_lines_on_the_command_line(binary, paste, tmp_path):
    paste(None, "\n".join(blocks((PAGES / "CommandLine.md").read_text(), "sh")), "sh", "-e")
    settings = (tmp_path / "apns-mock.yaml").read_text()
    for flag in set(re.findall(r"^  --(?:no-)?([a-z-]+) ", run(binary, "serve", "--help").stdout, re.MULTILINE)):
        key = flag.replace("-", "_")
        assert re.search(rf"^(# )?{key}:", settings, re.MULTILINE) or flag in ("config", "exit-on-stdin-close"), flag


def test_the_page_on_the_command_line_lists_every_command(binary):
    described = (PAGES / "CommandLine.md").read_text().split("## Settings")[0]
    listed = run(binary, "--help").stdout.split("SERVING SUBCOMMANDS:")[1]
    for command in re.findall(r"^  ([a-z]+) ", listed, re.MULTILINE):
        assert re.search(rf"`{command}[` ]", described), command


def test_the_page_on_the_admin_api_lists_every_path(binary):
    def unnamed(text):
        return re.sub(r"\{\w+\}", "{}", text)

    page = unnamed((PAGES / "AdminAPI.md").read_text())
    described = {unnamed(path).removeprefix("/api/v1") for path in json.loads(run(binary, "openapi").stdout)["paths"]}
    # Paths are named without /api/v1; those with it are examples of a path's normal form.
    named = {path for path in re.findall(r"[` ](/[a-z0-9./{}-]*)", page) if not path.startswith(("/api/", "//"))}
    assert {path for path in described if not path.startswith("/page/")} == named


@pytest.mark.parametrize(("page", "library"), LIBRARIES.items(), ids=LIBRARIES)
def test_every_library_has_a_complete_page(page, library):
    text = (PAGES / "Clients" / f"{page}.md").read_text()
    assert text.startswith(f"# {library}\n")
    assert [line for line in text.splitlines() if line.startswith("## ")] == [
        "## What to paste", "## When things go wrong", "## Known traps"]
    assert re.search(r"^\*\*(Run|Read)\*\* ", text, re.MULTILINE), "whether it was run or only read"
    for word in ("GOAWAY", "410", "429"):
        assert word in text.split("## When things go wrong")[1], word
    assert f"| [{library}]" in (PAGES / "PointingYourLibraryHere.md").read_text(), "in the table"


@pytest.mark.parametrize("path", [
    *(ROOT / name for name in DOCUMENTS), *sorted(PAGES.rglob("*.md"))], ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_somewhere(path):
    text = path.read_text()
    targets = re.findall(r"\]\(([^)#:]+)\)", text)
    files = re.findall(r"^\[([^\]]+)\]: (\S+\.md)$", text, re.MULTILINE)
    for name, _ in files:
        assert re.search(rf"(?<!^)\[{re.escape(name)}\]|^\[{re.escape(name)}\](?!:)", text, re.MULTILINE), f"{name} unused"
    for target in targets + [target for _, target in files]:
        assert (path.parent / target).exists(), target


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The address of the site that `make docs` builds. Every page is in its navigation and every link of a page leads somewhere:
    otherwise the build fails.
    """
    folder = tmp_path_factory.mktemp("docs")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", folder], cwd=ROOT, capture_output=True, text=True, timeout=60,
        env=clean_environment(NO_MKDOCS_2_WARNING="1"))
    assert done.returncode == 0, done.stderr
    handler = functools.partial(QuietHandler, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    """Serves files and logs nothing."""

    def log_message(self, *_):
        pass


def test_a_search_on_the_site_finds_a_page(site, browser):
    context = browser.browser.new_context()
    try:
        page = context.new_page()
        foreign = []
        page.on("request", lambda request: request.url.startswith((site, "data:", "blob:")) or foreign.append(request.url))
        page.goto(f"{site}/index.html")
        page.locator(".md-search-result__meta", has_text="Type to start searching").wait_for(state="attached")
        # The site notices keys that are pressed, not a text that is set.
        page.get_by_role("textbox", name="Search").press_sequentially("TooManyProviderTokenUpdates")
        page.locator(".md-search-result__item", has_text="Clock and devices in tests").first.wait_for()
        page.goto(f"{site}/Tasks/RetryTest.html")
        page.get_by_role("heading", name="Test how a provider retries").wait_for()
        assert page.locator("code", has_text="apns-mock exec").count() and not foreign, foreign
    finally:
        context.close()


# The words that the commands of a page about a task print.
TASKS = {
    "CI": ["200 apns-id", "410"], "RealLibrary": ["200", "com.example.app", "✓ push"],
    "LoadTest": ['outcome="accepted",status="200",reason=""} 30'], "SharedServer": ["503 ServiceUnavailable", "200 apns-id"],
    "FirstPush": ["200", "alert"], "RetryTest": ["503 ServiceUnavailable", "200 apns-id"],
    "LostPush": ["exec ended with 1", "fired"], "ExpiredToken": ["200", "403", "ExpiredProviderToken"],
    "UnregisteredDevice": ["410 Unregistered", "retried-410", "200 apns-id"], "OwnProfile": ["429 TooManyRequests", "refused"],
}


@pytest.mark.parametrize("name", TASKS)
def test_the_page_of_a_task_solves_it(start, paste, name):
    page = (PAGES / "Tasks" / f"{name}.md").read_text()
    lines = [text for text in blocks(page, "sh") if text != "apns-mock serve\n"]
    # Such pages say "with the server running"; the others start one, on free ports.
    server = start() if "he server running" in page else None
    if name == "SharedServer":
        lines[0] = re.sub(r"0\.0\.0\.0:\d+", "0.0.0.0:0", lines[0])
        lines[1] = 'eval "$(apns-mock env --port-file shared.json | grep -v APNS_MOCK_PORT_FILE)"\n' + lines[1].split("\n", 1)[1]
    words = paste(server, "\n".join(lines), "sh", "-e")
    assert all(word in words for word in TASKS[name]), words


def test_each_task_has_a_page():
    assert {path.stem for path in (PAGES / "Tasks").iterdir()} == set(TASKS)


def test_the_lifecycles_name_code_that_exists():
    """CONTRIBUTING.md: a name that was changed in the sources is changed there too."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    lifecycles = text.split("## Request lifecycle\n")[1].split("## Where to add things\n")[0]
    adding = text.split("## Where to add things\n")[1].split("\n## ")[0].split("**A fault action.**")[1].split("**A fault profile.**")[0]
    sources = "\n".join(path.read_text() for path in (ROOT / "Sources").rglob("*.swift"))
    declared = set(re.findall(r"\b(?:struct|class|enum|protocol|typealias|func|var|let|case) `?(\w+)", sources))
    declared |= {name for names in re.findall(r"\bcase ((?:\w+, )+\w+)", sources) for name in names.split(", ")}
    declared |= {path.name for path in (ROOT / "Sources").iterdir()} | {"String", "Dictionary"}
    named = re.findall(r"`([A-Z]\w*(?:\.\w+)*|[a-z]+[A-Z]\w*)`", lifecycles + adding)
    assert len(named) > 60
    files = {path.name for folder in ("Documentation", "Sources", "Tests") for path in (ROOT / folder).rglob("*.*")}
    tests = {path.stem for path in (ROOT / "Tests").rglob("*.swift")}
    unknown = {name for name in named if name not in files and name.split(".")[0] not in tests
               for part in name.split(".") if part not in declared}
    assert not unknown, unknown
