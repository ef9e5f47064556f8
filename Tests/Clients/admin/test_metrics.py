"""Numbers: `/api/v1/stats` about the pushes in the inbox, `/metrics` about everything since the start."""

import contextlib
import fcntl
import itertools
import json
import os
import re
import shutil
import socket
import subprocess
import time

import pytest
from cryptography import x509
from grafana_foundation_sdk.cog import plugins
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics
from prometheus_client.parser import text_string_to_metric_families as prometheus

from support import ROOT
from support.server import wait_until
from support.wire import Closed, connect, push_headers

PROMETHEUS = ROOT / "Distribution" / "prometheus"
OPEN_METRICS = {"accept": "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"}


def push(server, device, count=1, body=b'{"aps":{"alert":"hello"}}', **changes):
    with contextlib.suppress(Closed, OSError), connect(server) as wire:
        for _ in range(count):
            wire.push(push_headers(server, device, **changes), body)


def metrics(server, headers=None, parse=prometheus):
    """Returns the metric families by their names."""
    response = server.request("GET", "/metrics", headers=headers)
    assert response.status == 200
    return {family.name: family for family in parse(response.body.decode())}


def value(server, sample_name, **labels):
    """Returns the value of the sample with these labels, or 0 if there is none."""
    for family in metrics(server).values():
        for sample in family.samples:
            if sample.name == sample_name and all(sample.labels[key] == text for key, text in labels.items()):
                return sample.value
    return 0


def waits_until(server, **query):
    response = server.api("GET", "/pushes/wait", timeout="10s", **query)
    assert response["satisfied"], response


def busy(server, device):
    """Sends pushes with every kind of result."""
    push(server, device, 3)
    push(server, device, apns_push_type="nonsense")
    push(server, "xyz")
    for name, action in [("refuse", {"respond": {"status": 503, "reason": "ServiceUnavailable"}}),
                       ("odd", {"respond": {"status": 418, "reason": 'Made "up" \\ here', "unreal": True}}),
                       ("gone", {"reset_stream": {}})]:
        server.api("POST", "/rules", {"name": name, "when": {"topic": name + ".app"}, "do": action})
        push(server, device, apns_topic=name + ".app")


def test_prometheus_reads_the_metrics(start, device):
    server = start()
    busy(server, device)
    response = server.request("GET", "/metrics")
    assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    families = metrics(server)
    assert all(name.startswith(("apns_mock_", "process_")) for name in families)
    for family in families.values():
        assert family.documentation.endswith("."), family.name
        assert family.type in ("counter", "gauge", "histogram"), family.name
    assert families["apns_mock_build_info"].samples[0].labels["version"] == server.api("GET", "/status")["version"]


def test_open_metrics_on_request(start, device):
    server = start()
    busy(server, device)
    response = server.request("GET", "/metrics", headers=OPEN_METRICS)
    assert response.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    assert response.body.endswith(b"# EOF\n")
    assert metrics(server, OPEN_METRICS, open_metrics).keys() == metrics(server).keys()


@pytest.fixture(scope="module")
def promtool():
    """Returns the path of promtool. On Debian it is unpacked from the package prometheus, whose service is not installed."""
    folder = ROOT / ".build" / "promtool"
    found = shutil.which("promtool") or folder / "usr" / "bin" / "promtool"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # other processes of pytest have this fixture, too
        if not os.path.exists(found):
            unpack = "apt-get -qq download prometheus && dpkg-deb --extract prometheus_*.deb . && rm -f prometheus_*.deb"
            if not shutil.which("apt-get") or subprocess.run(
                    ["sh", "-c", unpack], cwd=folder, capture_output=True, timeout=300).returncode != 0:
                pytest.skip("promtool is not installed, and the package prometheus cannot be downloaded")
    return found


def test_promtool_accepts_the_metrics(promtool, start, device):
    server = start("--webhook", "http://127.0.0.1:9/")
    busy(server, device)
    done = subprocess.run([promtool, "check", "metrics"], input=server.request("GET", "/metrics").body,
                          capture_output=True, timeout=30)
    assert done.returncode == 0 and not done.stdout + done.stderr, done.stdout + done.stderr


@pytest.mark.parametrize("arguments", [["check", "rules", "alerts.yaml"], ["test", "rules", "alerts.test.yaml"]], ids=" ".join)
def test_promtool_accepts_the_alerts(promtool, arguments):
    done = subprocess.run([promtool, *arguments], cwd=PROMETHEUS, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def every_metric(start, device, tmp_path):
    """Returns the families and labels of a server that has all of them."""
    server = start("--store", f"sqlite:{tmp_path}/inbox.db", "--webhook", "http://127.0.0.1:9/",
                   "--upstream", "https://127.0.0.1:9", "--allow-topics", "com.example.none")
    busy(server, device)
    server.pushes()
    found = {}
    for family in metrics(server).values():
        for sample in family.samples:
            name = family.name if family.type == "histogram" else sample.name
            found.setdefault((name, family.type), set()).update(sample.labels)
    return found


def test_the_documentation_lists_every_metric(every_metric):
    page = (ROOT / "Documentation" / "Operations.md").read_text()
    rows = re.findall(r"^\| `((?:apns_mock|process)_\w+)` \| (\w+) \| (.*?) \|", page, re.MULTILINE)
    documented = {(name, kind): set(re.findall(r"`(\w+)`", labels)) for name, kind, labels in rows}
    assert documented == every_metric
    assert len(rows) == len(documented)


def test_alerts_and_dashboard_use_metrics_that_exist(every_metric):
    names = {name for name, _ in every_metric} | {"apns_mock_push_latency_seconds_bucket"}
    for file in ("alerts.yaml", "dashboard.json"):
        used = set(re.findall(r"\b(?:apns_mock|process)_\w+\b", (PROMETHEUS / file).read_text()))
        assert used <= names and len(used) > 10, (file, used - names)


def test_the_dashboard_has_grafanas_schema(promtool):
    """The classes of Grafana's SDK are generated from its schema: what they do not know is dropped, and a wrong type fails."""
    source = json.loads((PROMETHEUS / "dashboard.json").read_text())
    plugins.register_default_plugins()
    dashboard = json.loads(json.dumps(Dashboard.from_json(source), cls=JSONEncoder))

    def lost(before, after, path=""):
        if isinstance(before, dict):
            for name in before:
                yield from lost(before[name], after[name], f"{path}.{name}") if name in after else [f"{path}.{name}"]
        elif isinstance(before, list):
            for index, (one, other) in enumerate(zip(before, after, strict=True)):
                yield from lost(one, other, f"{path}[{index}]")
        elif before != after:
            yield path

    assert list(lost(source, dashboard)) == []
    panels = source["panels"]
    assert len({panel["id"] for panel in panels}) == len({panel["title"] for panel in panels}) == len(panels)
    for one, other in itertools.combinations([panel["gridPos"] for panel in panels], 2):
        apart = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        assert apart or one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"], "panels overlap"
    for panel in panels:
        for target in panel["targets"]:
            expression = target["expr"].replace("$__rate_interval", "5m")
            group = {"groups": [{"name": "x", "rules": [{"record": "x", "expr": expression}]}]}
            done = subprocess.run([promtool, "check", "rules", "/dev/stdin"], input=json.dumps(group), capture_output=True,
                                  text=True, timeout=30)
            assert done.returncode == 0, (panel["title"], done.stdout + done.stderr)


def test_the_process_is_measured(start, device):
    server = start()

    def resident():
        return value(server, "process_resident_memory_bytes")

    # After its start, the server gives back pages that it needed only then.
    wait_until(lambda: resident() == pytest.approx(server.resident_bytes(), rel=0.3), "it is what the system shows")
    assert value(server, "process_virtual_memory_bytes") > resident()
    before = value(server, "process_open_fds")
    with contextlib.ExitStack() as stack:
        for _ in range(10):
            stack.enter_context(connect(server))
        assert value(server, "process_open_fds") == before + 10
    assert value(server, "process_open_fds") < value(server, "process_max_fds")
    cpu = value(server, "process_cpu_seconds_total")
    push(server, device, 50)
    assert 0 < cpu < value(server, "process_cpu_seconds_total") < 60
    assert abs(value(server, "process_start_time_seconds") - time.time()) < 60


def test_findings_are_counted(start, device):
    server = start()
    assert value(server, "apns_mock_findings", finding="retried-permanent") == 0
    push(server, device, 3, apns_push_type="nonsense")
    assert value(server, "apns_mock_findings", finding="retried-permanent") == 2
    names = {sample.labels["finding"] for sample in metrics(server)["apns_mock_findings"].samples}
    assert names >= {"hot-retry", "abandoned", "duplicate"}
    server.api("DELETE", "/pushes", all="true")
    assert value(server, "apns_mock_findings", finding="retried-permanent") == 0


def test_findings_of_a_large_inbox_are_those_of_the_request_before(start, device):
    server = start()
    for _ in range(13):
        with connect(server) as wire:
            headers = push_headers(server, device, apns_push_type="nonsense")
            for stream in [wire.open(headers, b"{}") for _ in range(400)]:
                wire.response(stream)
    items = {item["finding"]: item["count"] for item in server.api("GET", "/findings")["items"]}
    assert items["retried-permanent"] > 0
    wait_until(lambda: value(server, "apns_mock_findings", finding="retried-permanent") == items["retried-permanent"],
               "they are counted")


def test_the_expiry_of_certificates_is_shown(start, certs):
    server = start()
    for name in ("ca", "server", "client"):
        chain = x509.load_pem_x509_certificates((certs / f"{name}.pem").read_bytes())
        assert value(server, "apns_mock_certificate_expiry_seconds", certificate=name) == (
            chain[0].not_valid_after_utc.timestamp())


def test_events_are_counted(start, device):
    server = start()
    busy(server, device)
    assert value(server, "apns_mock_pushes_total", outcome="accepted", status="200", reason="") == 3
    assert value(server, "apns_mock_pushes_total", outcome="rejected", reason="InvalidPushType", status="400") == 1
    assert value(server, "apns_mock_pushes_total", outcome="rejected", reason="BadDeviceToken", status="400") == 1
    assert value(server, "apns_mock_pushes_total", outcome="rejected", reason="ServiceUnavailable", status="503") == 1
    assert value(server, "apns_mock_pushes_total", outcome="rejected", reason="other", status="418") == 1
    assert value(server, "apns_mock_pushes_total", outcome="unanswered", reason="", status="") == 1
    assert value(server, "apns_mock_faults_injected_total", rule="refuse", action="respond") == 1
    assert value(server, "apns_mock_faults_injected_total", rule="gone", action="reset_stream") == 1
    assert value(server, "apns_mock_push_latency_seconds_count") == 7
    assert value(server, "apns_mock_push_latency_seconds_bucket", le="+Inf") == 7
    assert value(server, "apns_mock_push_latency_seconds_sum") > 0
    assert value(server, "apns_mock_connections_opened_total") == 6
    assert value(server, "apns_mock_tls_handshakes_total", result="done") == 6
    assert value(server, "apns_mock_inbox_records") == 8
    assert value(server, "apns_mock_ready") == 1


def test_counters_never_decrease(start, device):
    """Counters must not decrease when the inbox, rules, or other state is deleted or reset."""
    server = start("--max-records", "3")

    def counters():
        return {
            (sample.name, *sorted(sample.labels.items())): sample.value
            for family in metrics(server).values() if family.type != "gauge" for sample in family.samples
            if not sample.name.startswith(("apns_mock_store_", "process_"))}  # these always have something to do

    busy(server, device)
    server.pushes()  # waits until a store has evicted what exceeds the limit
    before = counters()
    assert value(server, "apns_mock_inbox_evicted_records_total") == 5
    assert server.api("POST", "/reset", {name: True for name in (
        "inbox", "rules", "profile", "counters", "clock", "devices", "channels")})
    server.api("DELETE", "/pushes", all="true")
    after = counters()
    assert before == after
    push(server, device, 4)
    server.pushes()
    later = counters()
    assert later.keys() >= before.keys() and all(later[name] >= before[name] for name in before)
    assert value(server, "apns_mock_pushes_total", outcome="accepted") == 7
    assert value(server, "apns_mock_inbox_evicted_records_total") == 6


def test_gauges_decrease_again(start, device):
    server = start()
    server.api("POST", "/rules", {"name": "hold", "do": {"hang": {"for": "5m"}}})
    with connect(server) as wire:
        wire.open(push_headers(server, device), b"{}")
        waits_until(server, outcome="pending")
        assert value(server, "apns_mock_pushes_pending") == 1
        assert value(server, "apns_mock_connections_open") == 1
    waits_until(server, outcome="unanswered")
    assert value(server, "apns_mock_pushes_pending") == 0
    assert value(server, "apns_mock_pushes_total", outcome="unanswered") == 1


def test_a_failed_handshake_is_counted(start):
    server = start()
    with socket.create_connection(("127.0.0.1", server.port)) as sock:
        sock.sendall(bytes.fromhex("160301000501000001ff"))
        assert sock.recv(100) is not None
        while sock.recv(4096):
            pass
    assert value(server, "apns_mock_tls_handshakes_total", result="failed") == 1


def test_labels_contain_no_client_values(start):
    """Many different tokens and topics must not create time series."""
    server = start()
    before = len(server.request("GET", "/metrics").body.splitlines())
    with connect(server) as wire:
        for number in range(1, 301):
            wire.push(push_headers(server, f"{number:064x}", apns_topic=f"com.app{number}"))
    text = server.request("GET", "/metrics").body.decode()
    assert len(text.splitlines()) == before
    assert "com.app" not in text and "0000000" not in text


def test_labels_of_rules_are_bounded(start, device):
    server = start()
    with connect(server) as wire:
        for number in range(210):
            server.api("PUT", "/rules/name-%d" % number, {"do": {"respond": {"reason": "ServiceUnavailable"}}})
            assert wire.push(push_headers(server, device)).status == 503
            server.api("DELETE", "/rules/name-%d" % number)
    samples = metrics(server)["apns_mock_faults_injected"].samples
    assert len(samples) == 201
    assert value(server, "apns_mock_faults_injected_total", rule="other", action="respond") == 10


# Statistics


def test_statistics(start, device):
    server = start()
    busy(server, device)
    stats = server.api("GET", "/stats")
    assert stats["matched"] == stats["total"] == 8 and stats["complete"] and stats["evicted"] == 0
    assert stats["accepted"] == 3
    assert stats["device_tokens"] == 2 and stats["connections"] == 6
    assert stats["outcome"]["counts"] == {"accepted": 3, "rejected": 4, "unanswered": 1}
    assert stats["status"] == {"counts": {"200": 3, "400": 2, "418": 1, "503": 1}, "none": 1, "other": 0}
    assert stats["reason"]["counts"]["BadDeviceToken"] == 1 and stats["reason"]["none"] == 4
    assert stats["topic"]["counts"]["com.example.app"] == 5
    assert stats["push_type"]["counts"] == {"alert": 7, "nonsense": 1}
    assert stats["rule"]["counts"] == {"gone": 1, "odd": 1, "refuse": 1} and stats["rule"]["none"] == 5
    assert stats["latency"]["answered"] == 7 and stats["latency"]["median_ms"] > 0 and stats["latency"]["p99_ms"] > 0
    assert stats["payload_bytes"] == sum(record["request"]["size"]["bytes"] for record in server.pushes())


def test_statistics_of_a_filter(start, device):
    server = start()
    busy(server, device)
    assert server.api("GET", "/stats", status="503")["matched"] == 1
    assert server.api("GET", "/stats", q="is:faulted !rule:odd")["rule"]["counts"] == {"gone": 1, "refuse": 1}
    last = server.pushes()[-1]["seq"]
    assert server.api("GET", "/stats", after=last - 2)["matched"] == 2
    empty = server.api("GET", "/stats", topic="unused")
    assert empty["matched"] == 0 and empty["latency"] == {"answered": 0, "median_ms": None, "p90_ms": None, "p99_ms": None, "max_ms": None}
    assert server.request("GET", "/api/v1/stats?topik=a").status == 400


def test_statistics_are_bounded(start, device):
    server = start()
    with connect(server) as wire:
        for number in range(60):
            wire.push(push_headers(server, device, apns_topic=f"com.app{number}"))
        for _ in range(3):
            wire.push(push_headers(server, device.upper(), apns_topic="com.often"))
    stats = server.api("GET", "/stats")
    counts = stats["topic"]["counts"]
    assert len(counts) == 50 and stats["topic"]["other"] == 11
    assert next(iter(counts.items())) == ("com.often", 3)
    assert stats["device_tokens"] == 1
