"""`apns-mock compare`: a second server with other settings replaces APNs."""

import json
import secrets

import pytest

from support import tokens
from support.server import run

COMBINATIONS = [(first, second) for first in ("alert", "background", "voip", "liveactivity", "widgets", "controls", "location")
                for second in ("voip", "complication", "fileprovider", "location", "pushtotalk") if first != second]
SEEDED = [f"push-type/{first}/{second}" for first, second in COMBINATIONS][:30]
SUFFIXES = {
    "voip": ".voip", "complication": ".complication", "fileprovider": ".pushkit.fileprovider", "location": ".location-query",
    "pushtotalk": ".voip-ptt",
}


@pytest.fixture
def compare(binary, tmp_path):
    """Runs the command against a server with its own key; returns the process and the evidence."""

    def comparer(real, *flags, code):
        report = tmp_path / "evidence.json"
        done = run(
            binary, "compare", "--upstream", real.url, "--upstream-ca", real.ca, "--key", real.key_path, "--team-id", real.team_id,
            "--topic", "com.example.app", "--report", report, *flags, timeout=60)
        assert done.returncode == code, done.stderr + done.stdout
        return done, json.loads(report.read_text())

    return comparer


def differing(evidence):
    return [one["name"] for one in evidence["results"] if (one["mock"].get("status"), one["mock"].get("reason"), one["mock"].get("event"))
            != (one["upstream"].get("status"), one["upstream"].get("reason"), one["upstream"].get("event"))]


@pytest.fixture
def real(start, tmp_path):
    """Starts the server that replaces APNs: the topics of its key's team are known."""

    def starter(*flags):
        running = start("--topics", "known", "--no-magic-tokens", *flags, certs=tmp_path / "real-certs")
        running.api("PUT", f"/keys/{running.key_id}", {
            "team_id": running.team_id, "public_key": tokens.public_half(running.key), "team_topics": ["com.example.app"]})
        return running

    return starter


def test_equal_servers_agree(real, compare, binary, tmp_path):
    server = real()
    done, evidence = compare(server, code=0)
    assert "0 differ" in done.stdout and len(evidence["results"]) > 250
    # Nothing was delivered.
    assert server.pushes(accepted="true") == []
    # The same table, offline.
    again = run(binary, "compare", "--import", tmp_path / "evidence.json")
    assert (again.returncode, again.stdout) == (0, done.stdout)


def test_exactly_the_seeded_differences_are_found(real, compare, tmp_path):
    rules = ", ".join(
        f"{{name: r{number}, when: {{push_type: {first}, topic: com.example.app{SUFFIXES[second]}}}, "
        f"stage: before_validation, do: {{respond: {{status: 403, reason: Forbidden}}}}}}"
        for number, (first, second) in enumerate(COMBINATIONS[:30]))
    profile = tmp_path / "seeded.yaml"
    profile.write_text(f"name: seeded\nrules: [{rules}]\n")
    done, evidence = compare(real("--profile", profile), "--only", "push-type/*", code=1)
    assert sorted(differing(evidence)) == sorted(SEEDED) and "30 differ" in done.stdout
    assert all(name in done.stdout for name in SEEDED)


def test_evidence_has_no_secrets(real, compare, tmp_path):
    server = real("--rules", "strict")
    device = secrets.token_hex(32)
    server.api("PUT", f"/devices/{device}", {"state": "online"})
    _, evidence = compare(server, "--device-token", device, "--probe-tokens", code=1)
    text = (tmp_path / "evidence.json").read_text()
    for secret in (device, server.key_id, server.team_id, "com.example.app", "eyJ"):
        assert secret not in text, secret
    assert evidence["endpoint"] == server.url and "provider-token/text" in text and "device/background" in text
    background = next(one for one in evidence["results"] if one["name"] == "device/background")
    assert background["upstream"]["status"] == 200 and "apns-id" in background["upstream"]["headers"]
    # In `strict`, the payload of these probes is checked.
    assert "payload/text" in differing(evidence)


def test_it_stops_at_the_first_429(real, compare, tmp_path):
    profile = tmp_path / "throttle.yaml"
    profile.write_text(
        "name: throttle\nrules: [{name: t, stage: before_validation, trigger: {after: 5}, do: {respond: {status: 429, reason: TooManyRequests}}}]\n")
    done, evidence = compare(real("--profile", profile), code=1)
    assert len(evidence["results"]) < 12 and "stopped" in done.stdout and "429 TooManyRequests" in evidence["stopped"]


def test_goaways_of_upstream_are_survived(real, compare, tmp_path):
    profile = tmp_path / "away.yaml"
    profile.write_text("name: away\nrules: [{name: g, stage: before_validation, trigger: {every: 7}, do: {goaway: {last_stream: before_this}}}]\n")
    done, evidence = compare(real("--profile", profile), "--only", "apns-id/*", "--only", "method/*", code=0)
    assert "0 differ" in done.stdout and evidence.get("stopped") is None


def test_the_list_is_printed_without_a_connection(binary):
    done = run(binary, "compare", "--dry-run", "--only", "apns-id/*", "--json")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0 and len(lines) > 10 and all(one["probe"].startswith("apns-id/") for one in lines)


@pytest.mark.parametrize(("flags", "code", "message"), [
    ([], 2, "--upstream is missing"), (["--upstream", "ftp://x"], 2, "--upstream must be"),
    (["--upstream", "https://127.0.0.1:1", "--topic", "t"], 2, "--key FILE"),
    (["--import", "/dev/null"], 2, "is no file of apns-mock compare --report"), (["--only", "nothing"], 2, "no probe is selected"),
    (["--import", "e.json", "--only", "a"], 2, "omit --only"), (["--import", "e.json", "--topic", "a"], 2, "omit --topic"),
    (["--topic", ""], 2, "is not a bundle id"), (["--topic", "a b"], 2, "is not a bundle id"),
    (["--device-token", "xyz"], 2, "is not a device token"), (["--device-token", ""], 2, "is not a device token"),
    (["--certificate", "c", "--key", "k"], 2, "specify one of them"),
])
def test_wrong_flags(binary, flags, code, message):
    done = run(binary, "compare", *flags)
    assert done.returncode == code and message in done.stderr, done.stderr


def test_an_unreachable_service_is_named(binary, server):
    done = run(binary, "compare", "--upstream", "https://127.0.0.1:1", "--key", server.key_path, "--team-id", server.team_id, "--topic", "t")
    assert done.returncode == 4 and "cannot connect to 127.0.0.1:1" in done.stderr


def sent(evidence):
    """Returns the names of the probes that were sent; the SETTINGS come with the connection."""
    return [one["name"] for one in evidence["results"] if not one["name"].startswith("settings/")]


def test_a_credential_that_is_refused_ends_the_comparison(real, compare):
    """APNs would otherwise count hundreds of invalid provider tokens."""
    done, evidence = compare(real(), "--key-id", "UNKNOWNKEY", code=1)
    assert sent(evidence) == ["base"] and "InvalidProviderToken" in done.stdout
    assert "the service does not accept the credential" in evidence["stopped"]


def test_a_service_that_fails_ends_the_comparison(real, compare):
    server = real()
    server.api("POST", "/rules", {
        "name": "down", "stage": "before_validation", "do": {"respond": {"status": 503, "reason": "ServiceUnavailable"}}})
    assert len(sent(compare(server, code=1)[1])) == 3


def test_a_certificate_is_compared_with_one_of_the_same_topics(start, binary, certs, tmp_path):
    made = json.loads(run(binary, "certs", "client", "--certs", certs, "--topic", "com.example.own", "--json").stdout)
    server = start("--no-magic-tokens")
    done = run(binary, "compare", "--upstream", server.url, "--upstream-ca", server.ca, "--certificate", made["certificate"],
               "--certificate-key", made["key"], "--topic", "com.example.own", "--report", tmp_path / "e.json", timeout=60)
    assert done.returncode == 0 and "0 differ" in done.stdout, done
    assert "provider-token" not in (tmp_path / "e.json").read_text()


def test_a_report_that_cannot_be_written_is_named_before_anything_is_sent(real, binary):
    server = real()
    done = run(binary, "compare", "--upstream", server.url, "--upstream-ca", server.ca, "--key", server.key_path, "--team-id",
               server.team_id, "--topic", "com.example.app", "--report", "/nowhere/e.json", timeout=60)
    assert done.returncode == 2 and "/nowhere/e.json" in done.stderr and server.pushes() == []
