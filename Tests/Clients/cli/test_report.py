"""The report of a run: `exec --report`, `apns-mock report`, baselines, summaries and JUnit files."""

import base64
import json
import os
import random
import re
import sys
import threading
import xml.etree.ElementTree
import zlib

import pytest

from support.server import run

SUITE = """
import json, os, subprocess, urllib.request

def api(method, path, body):
    request = urllib.request.Request(f"http://{os.environ['APNS_MOCK_ADMIN']}/api/v1{path}", json.dumps(body).encode(),
                                     {"content-type": "application/json"}, method=method)
    return json.load(urllib.request.urlopen(request))

def push(device):
    subprocess.run([os.environ["MOCK"], "send", device * 32, "--topic", "com.example.app"], capture_output=True)

RUN = f"/runs/{os.environ['APNS_MOCK_RUN']}"

def test(name, device, outcome="passed", message=None):
    number = api("POST", RUN + "/tests", {"name": name})["number"]
    push(device)
    api("PATCH", f"{RUN}/tests/{number}", {"outcome": outcome, "message": message})
"""


@pytest.fixture
def suite(binary, certs, tmp_path):
    """`suite(*flags, program=TEXT)` runs a program in Python under `exec`."""
    def runner(*flags, program, code=0):
        result = run(binary, "exec", "--certs", certs, *flags, "--", sys.executable, "-c", SUITE + program, cwd=tmp_path,
                     environment={"MOCK": str(binary), "GITHUB_SHA": "ab12"}, timeout=60)
        assert result.returncode == code, result.stderr
        return result
    return runner


def summary(path):
    text = path.read_text()
    return json.loads(re.search(r'id="summary">(.*?)</script>', text)[1])


FAILING = """
test("test_good", "ab")
test("test_bad", "cd", "failed", "expected 200\\nfound 503")
raise SystemExit(1)
"""


def test_exec_writes_report_summary_and_junit(suite, tmp_path):
    result = suite("--report", "r.html", "--summary", "s.md", "--junit", "j.xml", "--seed", "7",
                   "--profile", "flaky-503?rate=1", program=FAILING, code=1)
    report = summary(tmp_path / "r.html")
    assert report["verdict"].startswith("1 of 2 tests failed; 2 pushes lost")
    assert report["runs"][0]["labels"] == {"commit": "ab12"} and report["runs"][0]["seed"] == 7
    assert [(one["name"], one["message"], one["nearest"][0]["rule"]) for one in report["failures"]] == [
        ("test_bad", "expected 200\nfound 503", "flaky")]
    assert "exec" in report["command"] and report["embedded"] == report["pushes"] == 2
    assert (tmp_path / "r.html").stat().st_mode & 0o077 == 0
    lines = result.stderr.splitlines()
    assert any(line.endswith("r.html") and "report: " in line for line in lines)
    assert any("1 of 2 tests failed; 2 pushes lost" in line for line in lines)
    assert any("to repeat the run: " in line and "exec" in line for line in lines)
    text = (tmp_path / "s.md").read_text()
    assert "**test\\_bad**" in text and "503 ServiceUnavailable" in text
    cases = xml.etree.ElementTree.parse(tmp_path / "j.xml").getroot().findall(".//testcase")
    assert [case.get("name") for case in cases] == ["test_good", "test_bad", "the program ends with 0"]
    assert "the program ended with 1" in xml.etree.ElementTree.tostring(cases[2], encoding="unicode")
    assert cases[1].find("failure").text == "expected 200\nfound 503"


def test_the_command_that_repeats_the_run_has_the_seed_but_no_token(suite, tmp_path):
    suite("--report", "r.html", "--admin-token", "secret", program="")
    report = summary(tmp_path / "r.html")
    assert re.search(r"exec --seed \d+ ", report["command"]) and "secret" not in (tmp_path / "r.html").read_text()


def test_pushes_that_resets_removed_are_in_everything_exec_writes(suite, binary, tmp_path):
    program = 'for device in ("ab", "cd", "ef"): push(device); api("POST", "/reset", {})\npush("12")\nraise SystemExit(3)'
    result = suite("--report", "r.html", "--summary", "s.md", "--junit", "j.xml", "--export", "all.ndjson", program=program, code=3)
    verdict = "the program ended with 3; no push lost of 4."
    assert summary(tmp_path / "r.html")["verdict"] == verdict
    assert verdict in (tmp_path / "s.md").read_text() and verdict in (tmp_path / "j.xml").read_text()
    assert result.stderr.splitlines()[-1].endswith("4 pushes: 4 accepted")
    lines = (tmp_path / "all.ndjson").read_text().splitlines()
    assert [json.loads(line)["seq"] for line in lines[1:-1]] == [1, 2, 3, 4]
    assert run(binary, "report", "all.ndjson", "-o", "again.html", cwd=tmp_path).stdout.strip() == verdict
    # A file that is cut off at the end of a line.
    for kept in (1, 3, 5):
        (tmp_path / "cut.ndjson").write_text("\n".join(lines[:kept]) + "\n")
        words = run(binary, "report", "cut.ndjson", "-o", "cut.html", cwd=tmp_path).stdout
        assert "this report lacks pushes" in words and "no push lost" not in words and "no push arrived" not in words
    (tmp_path / "cut.ndjson").write_text("\n".join(lines[:2] + lines[3:]) + "\n")
    assert "1 push of this run is not in this report" in run(binary, "report", "cut.ndjson", "-o", "cut.html", cwd=tmp_path).stdout


def test_an_export_says_what_of_the_run_it_lacks(suite, binary, tmp_path):
    program = '''
def export(name, *query):
    with open(name, "wb") as file:
        subprocess.run([os.environ["MOCK"], "export", *query], stdout=file, check=True)
push("ab"); push("cd"); export("whole"); export("part", "status:503"); api("POST", "/reset", {}); push("ef"); export("reset")
urllib.request.urlopen(urllib.request.Request(f"http://{os.environ['APNS_MOCK_ADMIN']}/api/v1/pushes?all=true", method="DELETE"))
export("deleted")
'''
    result = suite("--report", "r.html", program=program)
    found = {name: run(binary, "report", name, "-o", "x.html", cwd=tmp_path).stdout for name in ("whole", "part", "reset", "deleted")}
    assert "no push lost of 2" in found["whole"] and "lacks pushes of the run" in found["part"]
    assert "2 pushes of this run are not in this report" in found["reset"] and "3 pushes of" in found["deleted"]
    assert not any("no push lost" in found[name] for name in ("part", "reset", "deleted"))
    assert "1 push of this run is not in this report" in summary(tmp_path / "r.html")["verdict"]
    assert "3 pushes: 2 accepted, 1 not kept, deleted or evicted before they were counted" in result.stderr


SERVER = '''
def serve(*end):
    process = subprocess.Popen([os.environ["MOCK"], "serve", "--apns", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--certs",
                                os.path.dirname(os.environ["APNS_MOCK_CA"]), "--port-file", "own.json", "--exit-on-stdin-close"],
                               stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
    while not os.path.exists("own.json"):
        assert process.poll() is None
        time.sleep(0.01)
    def own(*words):
        return subprocess.run([os.environ["MOCK"], *words, "--port-file", "own.json"], capture_output=True, check=True, text=True).stdout.strip()
    run = own("run", "start", "own suite")
    for device in ("ab", "cd"):
        own("send", device * 32, "--topic", "com.example.app")
        own("reset")
    return process
import time
'''


def test_the_pushes_of_servers_that_the_program_starts(suite, binary, tmp_path):
    result = suite("--report", "r.html", "--export", "all.ndjson", "--fail-on-rejected", program=SERVER + 'push("ef"); serve()')
    report = summary(tmp_path / "r.html")
    assert [one["name"] for one in report["runs"]][1:] == ["own suite"] and report["verdict"] == "The run was interrupted: no push lost of 3."
    assert report["command"].startswith("apns-mock exec ") and report["embedded"] == 3
    assert result.stderr.splitlines()[-1].endswith("3 pushes: 3 accepted")
    assert "no push lost of 3" in run(binary, "report", "all.ndjson", "-o", "x.html", cwd=tmp_path).stdout
    (tmp_path / "own.json").unlink(missing_ok=True)
    result = suite("--report", "r.html", program=SERVER + "serve().kill()")
    assert "a server was killed" in summary(tmp_path / "r.html")["verdict"]
    assert "those of a server that has left no complete export" in result.stderr
    result = suite("--report", "r.html", "--fail-on-rejected", code=3, program='push("ef"); open(os.environ["APNS_MOCK_EXPORTS"] + "/a.ndjson", "w").write(\'{"kind":"run"\'); os._exit(3)')
    assert "no complete export" in result.stderr and summary(tmp_path / "r.html")["embedded"] == 1


def test_the_command_that_repeats_the_run_has_the_settings_of_variables(binary, certs, tmp_path):
    environment = {"APNS_MOCK_PROFILE": "flaky-503?rate=0.5", "APNS_MOCK_ADMIN_TOKEN": "secret"}
    run(binary, "exec", "--certs", certs, "--report", "r.html", "--", "true", cwd=tmp_path, environment=environment)
    assert summary(tmp_path / "r.html")["command"].startswith("APNS_MOCK_PROFILE='flaky-503?rate=0.5' apns-mock exec --seed ")
    assert "secret" not in (tmp_path / "r.html").read_text()


def test_a_killed_suite_is_marked(suite, tmp_path):
    suite("--report", "r.html", program='api("POST", RUN + "/tests", {"name": "t"}); os.kill(os.getpid(), 9)', code=137)
    report = summary(tmp_path / "r.html")
    assert (report["outcome"], report["failures"][0]["outcome"]) == ("interrupted", "interrupted")
    assert report["verdict"].startswith("The run was interrupted")


def test_a_report_without_pushes_says_so(suite, tmp_path):
    suite("--report", "r.html", program="")
    report = summary(tmp_path / "r.html")
    assert report["pushes"] == 0 and "no push arrived" in report["verdict"]


@pytest.mark.timeout(240)  # Starts many servers.
def test_a_baseline_says_what_is_new(suite, binary, tmp_path):
    suite("--report", "old.html", "--export", "old.ndjson", program='test("test_a", "ab"); test("test_b", "cd")')
    for baseline in ("old.html", "old.ndjson"):
        suite("--report", "new.html", "--baseline", baseline, "--profile", "flaky-503?rate=1",
              program='test("test_a", "ab", "failed"); test("test_b", "cd")')
        found = summary(tmp_path / "new.html")["baseline"]
        assert found["tests"]["new"] == ["test_a"] and len(found["lost"]["new"]) == 2 and found["warning"] is None
    # A pipe can be read once.
    os.mkfifo(tmp_path / "pipe")
    for baseline in ("old.html", "old.ndjson"):
        content = (tmp_path / baseline).read_bytes()
        writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(content,), daemon=True)
        writer.start()
        run(binary, "report", "old.ndjson", "-o", "new.html", "--baseline", "pipe", cwd=tmp_path, timeout=30)
        writer.join(5)
        assert len(summary(tmp_path / "new.html")["baseline"]["tests"]["unchanged"]) == 0
        assert summary(tmp_path / "new.html")["baseline"]["old"]["tests"] == 2
    # What did not run is not fixed.
    for program, unknown, fixed in (('test("test_a", "ab")', ["test_b"], ["test_a"]), ("", ["test_a", "test_b"], []),
                                    ('test("test_a", "ab", "skipped"); test("test_b", "cd")', ["test_a"], ["test_b"])):
        suite("--report", "bad.html", "--profile", "flaky-503?rate=1",
              program='test("test_a", "ab", "failed"); test("test_b", "cd", "failed")')
        suite("--report", "new.html", "--summary", "s.md", "--baseline", "bad.html", program=program)
        found = summary(tmp_path / "new.html")["baseline"]
        assert (found["tests"]["unknown"], found["tests"]["fixed"]) == (unknown, fixed)
        assert (len(found["lost"]["unknown"]), found["lost"]["fixed"]) == (2, [])
        assert "; unknown, because not all tests ran or pushes are missing, " in (tmp_path / "s.md").read_text()
    suite("--report", "new.html", "--baseline", "bad.html", program='test("test_a", "ab"); test("test_b", "cd")')
    assert len(summary(tmp_path / "new.html")["baseline"]["lost"]["fixed"]) == 2
    suite("--report", "again.html", "--baseline", "new.html", "--profile", "flaky-503?rate=1", program='test("test_a", "ab", "failed"); test("test_b", "cd")')
    assert summary(tmp_path / "again.html")["verdict"].endswith("; new since new.html: failed tests (1), lost pushes (2).")
    other = suite("--report", "other.html", "--baseline", "old.html", program='test("test_else", "ab")')
    assert "apns-mock: None of the tests is in the baseline" in other.stderr
    assert summary(tmp_path / "other.html")["baseline"]["warning"].startswith("None of the tests")


def embedded(path):
    """Returns the numbers of the pushes in a report, in the order of the file."""
    text = re.search(r'id="records">(.*?)</script>', path.read_text())[1]
    return [int(seq) for seq in re.findall(rb'^{"seq":(\d+),', zlib.decompress(base64.b64decode(text), -15), re.M)]


@pytest.fixture
def big_report(suite, binary, tmp_path):
    """`big_report(failed, accepted, bytes)` writes the report of a run with so many pushes, the failed ones first."""
    def write(failed, accepted, size):
        suite("--export", "one.ndjson", "--profile", "flaky-503?rate=1&streak=1", program='test("test_a", "ab"); test("test_a", "ab")')
        lines = [json.loads(line) for line in (tmp_path / "one.ndjson").read_text().splitlines()]
        heads = [line for line in lines if "kind" in line and "seq" not in line]
        bad, good = [line for line in lines if "seq" in line]
        assert (bad["served"]["status"], good["served"]["status"]) == (503, 200)
        generator = random.Random(7)
        with open(tmp_path / "big.ndjson", "w") as file:
            for line in heads:
                file.write(json.dumps(line) + "\n")
            for seq in range(1, failed + accepted + 1):
                record = (bad if seq <= failed else good) | {"seq": seq}
                # What cannot be compressed.
                payload = {"aps": {"alert": base64.b64encode(generator.randbytes(size)).decode()}}
                record["request"] = record["request"] | {"payload": payload, "device_token": f"{seq:064x}", "path": f"/3/device/{seq:064x}"}
                file.write(json.dumps(record, separators=(",", ":")) + "\n")
        result = run(binary, "report", "big.ndjson", "-o", "big.html", cwd=tmp_path, timeout=120)
        assert result.returncode == 0, result.stderr
        return tmp_path / "big.html"
    return write


@pytest.mark.long
@pytest.mark.timeout(240)  # The quick build takes ten times as long as that of the packages.
def test_a_report_has_at_most_20_000_pushes(big_report):
    path = big_report(700, 19_800, 6)
    seqs = embedded(path)
    assert (summary(path)["pushes"], summary(path)["embedded"], len(seqs)) == (20_500, 20_000, 20_000)
    # Those that were not accepted, and the newest of the others.
    assert seqs == [*range(1, 701), *range(1_201, 20_501)]
    assert path.stat().st_size < 15_000_000


@pytest.mark.timeout(240)
def test_a_report_has_at_most_15_megabytes(big_report):
    path = big_report(5_000, 500, 2_900)
    seqs = embedded(path)
    assert 12_000_000 < path.stat().st_size <= 15_000_000
    # The newest of those that were not accepted; the others are counted.
    assert seqs == list(range(seqs[0], 5_001)) and len(seqs) == summary(path)["embedded"] < 5_000
    assert summary(path)["pushes"] == 5_500 and summary(path)["outcomes"]["accepted"] == 500


def test_report_of_exports(suite, binary, tmp_path):
    def report(*arguments, code=0):
        result = run(binary, "report", *arguments, cwd=tmp_path, timeout=60)
        assert result.returncode == code, result.stderr
        return result

    suite("--export", "one.ndjson", program='test("test_a", "ab", "failed", "why")', code=0)
    suite("--export", "two.ndjson", program='test("test_b", "cd")')
    assert report("one.ndjson", "-o", "r.html").stdout.startswith("1 of 1 test failed")
    assert summary(tmp_path / "r.html")["failures"][0]["message"] == "why"
    report("one.ndjson", "two.ndjson", "-o", "r.html")
    both = summary(tmp_path / "r.html")
    assert [one["id"] for one in both["runs"]] == ["1-r1", "2-r1"] and both["pushes"] == 2
    assert [(one["name"], one["pushes"]) for one in both["tests"]] == [("test_a", 1), ("test_b", 1)]

    lines = (tmp_path / "one.ndjson").read_text()
    (tmp_path / "cut.ndjson").write_text(lines[:-200])
    assert "cut.ndjson:4: " in report("cut.ndjson", "-o", "x.html", code=2).stderr
    (tmp_path / "newer.ndjson").write_text(lines.replace('"format":2', '"format":99'))
    assert "format" in report("newer.ndjson", "-o", "x.html", code=2).stderr
    assert not (tmp_path / "x.html").exists()
    before = (tmp_path / "one.ndjson").read_text()
    (tmp_path / "link.ndjson").symlink_to("one.ndjson")
    for output in ("one.ndjson", "./one.ndjson", "link.ndjson"):
        assert "is the export to read" in report("one.ndjson", "-o", output, code=2).stderr
    assert "is the file of --report too" in report("one.ndjson", "-o", "x.html", "--junit", "./x.html", code=2).stderr
    assert (tmp_path / "one.ndjson").read_text() == before
    (tmp_path / "empty.ndjson").write_text("")
    assert "no push arrived" in report("empty.ndjson", "-o", "r.html").stdout
    (tmp_path / "other.html").write_text("<!doctype html><title>x</title>")
    assert "is no report" in report("one.ndjson", "-o", "x.html", "--baseline", "other.html", code=2).stderr
    assert "is not writable" in report("one.ndjson", "-o", "/nowhere/r.html", code=2).stderr
    assert "open a report in a browser" in report("other.html", "-o", "x.html", code=2).stderr
    assert "--summary: - is not a file" in report("one.ndjson", "-o", "r.html", "--summary", "-", code=2).stderr


def test_a_baseline_that_lacks_pushes_makes_nothing_new(suite, binary, tmp_path):
    suite("--report", "r.html", "--export", "all.ndjson", "--profile", "flaky-503?rate=1", program='test("test_a", "ab"); test("test_b", "cd")')
    lines = (tmp_path / "all.ndjson").read_text().splitlines(keepends=True)
    hole = [line for line in lines if not line.startswith('{"seq":1,')]
    for old in (hole, lines[:-1]):
        (tmp_path / "old.ndjson").write_text("".join(old))
        done = run(binary, "report", "all.ndjson", "-o", "new.html", "--baseline", "old.ndjson", cwd=tmp_path)
        found = summary(tmp_path / "new.html")["baseline"]
        assert found["lost"]["new"] == [] and len(found["lost"]["unknown"]) == 2, found["lost"]
        assert found["warning"].startswith("The baseline lacks pushes") and "since" not in done.stdout
        assert done.stderr.startswith("warning: The baseline lacks pushes")
    (tmp_path / "empty.ndjson").write_text("")
    run(binary, "report", "all.ndjson", "-o", "new.html", "--baseline", "empty.ndjson", cwd=tmp_path)
    assert summary(tmp_path / "new.html")["baseline"]["warning"].startswith("The baseline has neither")


def test_what_an_export_lacks_may_be_the_retry(suite, binary, tmp_path):
    """A push is only lost if no later attempt can be missing."""
    suite("--report", "r.html", "--export", "all.ndjson", "--profile", "flaky-503?rate=1&streak=1", program='push("ab"); push("ab")')
    assert "no push lost of 2" in summary(tmp_path / "r.html")["verdict"]
    lines = (tmp_path / "all.ndjson").read_text().splitlines(keepends=True)
    (at,) = [index for index, line in enumerate(lines) if line.startswith('{"seq":2,')]
    for cut in (lines[:at], lines[:at] + lines[at + 1:]):
        (tmp_path / "cut.ndjson").write_text("".join(cut))
        verdict = run(binary, "report", "cut.ndjson", "-o", "cut.html", cwd=tmp_path).stdout
        assert " lost" not in verdict and "abandoned" not in verdict, verdict


def test_a_test_that_moves_the_clock_takes_the_time_of_the_machine(suite, binary, tmp_path):
    program = '''
for name, time in (("forward", {"advance": "55m"}), ("back", None)):
    number = api("POST", RUN + "/tests", {"name": name})["number"]
    subprocess.run([os.environ["MOCK"], "clock", *(("advance", "55m") if time else ("real",))], check=True, stdout=subprocess.DEVNULL)
    api("PATCH", f"{RUN}/tests/{number}", {"outcome": "passed"})
'''
    suite("--report", "r.html", "--junit", "j.xml", "--export", "e.ndjson", program=program)
    assert all(0 <= test["duration_ms"] < 60_000 for test in summary(tmp_path / "r.html")["tests"])
    run(binary, "report", "e.ndjson", "-o", "again.html", "--junit", "again.xml", cwd=tmp_path)
    for name in ("j.xml", "again.xml"):
        cases = xml.etree.ElementTree.parse(tmp_path / name).getroot().findall(".//testcase")
        assert all(0 <= float(case.get("time")) < 60 for case in cases), name


def test_the_report_says_why_a_verification_failed(suite, tmp_path):
    (tmp_path / "v.yaml").write_text("expect: [{name: welcome was sent, match: {topic: com.example.app}, count: 2}]")
    suite("--report", "r.html", "--verify", "v.yaml", program='push("ab")', code=1)
    assert "welcome was sent: expected exactly 2, found 1" in summary(tmp_path / "r.html")["verdict"]


def test_a_command_with_line_breaks_is_one_line(binary, certs, tmp_path):
    script = "echo 'a`b'\necho c"
    run(binary, "exec", "--certs", certs, "--report", "r.html", "--summary", "s.md", "--", "sh", "-c", script, cwd=tmp_path)
    command = summary(tmp_path / "r.html")["command"]
    assert "\n" not in command and f"```sh\n{command}\n```" in (tmp_path / "s.md").read_text()
    # bash has the same words.
    words = run("bash", "-c", f"printf '%s\\0' {command}").stdout.split("\0")
    assert words[-2] == script


def test_the_pushes_of_other_tests_are_named_as_such(suite, tmp_path):
    suite("--summary", "s.md", "--report", "r.html",
          program='push("ab"); number = api("POST", RUN + "/tests", {"name": "t"})["number"]; api("PATCH", f"{RUN}/tests/{number}", {"outcome": "failed"})')
    assert "No push belongs to this test. The nearest in time:" in (tmp_path / "s.md").read_text()
