"""Fixtures: loading them at the start and later, their mistakes, and saving them."""

import datetime
import json
import urllib.error
import urllib.request

import jsonschema
import pytest
import yaml

from support.selection import ALL
from support.server import run
from support.wire import connect

APP = "com.acme.app"
YAML = {"content-type": "application/yaml"}
DEVICES = {"devices": [{"id": "anna", "apps": [{"bundle_id": APP, "tokens": {"alert": "aa01"}}]}]}


def put(server, text, path="/fixtures", method="PUT", headers=YAML):
    return server.request(method, "/api/v1" + path, text.encode(), headers=headers)


def serve(binary, certs, *flags):
    return run(binary, "serve", "--apns", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--certs", certs, *flags, timeout=30)


@pytest.fixture
def sample(binary):
    done = run(binary, "fixtures", "sample")
    assert done.returncode == 0
    return done.stdout


# Fixtures with one mistake, at the place marked by §, and a part of the problem's message or hint.
MISTAKES = [
    (f"- {{id: b-1, apps: [{{bundle_id: {APP}, tokens: {{alert: AA02, voip: §aa02}}}}]}}", "is already in line 3"),
    ("- {id: b-1}\n- {id: §b-1}", "the device b-1 is already in line 3"),
    (f"- {{id: b-1, apps: [{{bundle_id: {APP}, tokens: {{§alret: aa02}}}}]}}", 'did you mean "alert"?'),
    (f"- {{id: b-1, apps: [{{bundle_id: {APP}, tokens: {{alert: §aa0}}}}]}}", "even number of hexadecimal digits"),
    (f"- {{id: b-1, apps: [{{bundle_id: §{APP}.voip}}]}}", "write com.acme.app"),
    ("- {id: b-1, apps: [{bundle_id: §com.acme.apq}]}", 'did you mean "com.acme.app"?'),
    ("- {id: b-1, §sate: offline}", 'did you mean "state"?'),
    ("- {id: b-1, state: §asleep}", "online, offline, power_restricted"),
    ("- {id: §beef}", "is neither hexadecimal"), ("- {id: §notifications}", 'nor "notifications"'),
    ("- {id: §1b}", "begins with a letter"),
    ("- §{state: online}", "id is missing"),
    *((f"- {{id: b-1, apps: [{{bundle_id: {APP}, tokens: {{alert: {{token: aa02, expired_at: §{time}}}}}}}]}}", word)
      for time, word in (("2026-02-30T12:00:00Z", "a day that exists"), ("20000-01-01T00:00:00Z", "RFC 3339"),
                         ("soon", "RFC 3339"))),
    ("channels: [{bundle_id: §com.beta, id: AAAA, message_storage_policy: 0}]", "com.beta is not in apps"),
    (f"channels: [{{bundle_id: {APP}, id: AAAA, message_storage_policy: §2}}]", "from 0 to 1"),
    (f"channels: [{{bundle_id: {APP}, id: §'A=', message_storage_policy: 0}}]", "base64 with padding"),
    (f"channels: [{{bundle_id: {APP}, id: AAAA, message_storage_policy: 0}}, "
     f"{{bundle_id: {APP}, id: §AAAA, message_storage_policy: 1}}]", "is already in line 2"),
]


@pytest.mark.parametrize(("text", "word"), MISTAKES)
def test_a_mistake_is_reported_with_its_place_and_nothing_is_loaded(start, text, word):
    server = start()
    text = f"apps: [{{bundle_id: {APP}}}]\n" + ("devices:\n" if text.startswith("-") else "") + text
    lines = text.split("§")[0].split("\n")
    before = server.request("GET", "/api/v1/fixtures").body
    for path, method in (("/fixtures", "PUT"), ("/fixtures/lint", "POST")):
        response = put(server, text.replace("§", ""), path, method)
        assert response.status == 422, response.body
        (problem,) = response.json["problems"]
        assert (problem["line"], problem["column"]) == (len(lines), len(lines[-1]) + 1), problem
        assert word in f'{problem["message"]}, {problem["hint"]}'
    assert server.request("GET", "/api/v1/fixtures").body == before


def test_places_in_json(start):
    server = start()
    text = '{"devices": [{"id": "anna"},\n  {"id": "bert", "state": "asleep"}, {"id": "anna"}]}'
    problems = put(server, text, headers={}).json["problems"]
    assert [(problem["line"], problem["column"], problem["path"]) for problem in problems] == [
        (2, 27, "devices[1].state"), (2, 45, "devices[2].id")]
    assert put(server, '{"devices": [', headers={}).json["problems"][0]["line"] == 1


def test_devices_are_merged_by_id(start):
    server = start()
    assert server.api("PUT", "/fixtures", DEVICES) == {"apps": 0, "devices": 1, "channels": 0}
    server.api("POST", "/devices/anna/offline")
    assert server.api("PUT", "/fixtures", {"devices": [
        {"id": "anna", "apps": [{"bundle_id": APP, "tokens": {"alert": "aa02"}}]}, {"id": "bert"}]})["devices"] == 2
    assert server.request("GET", "/api/v1/devices/aa01").status == 404, "the device is replaced"
    assert server.api("GET", "/devices/anna")["state"] == "online"
    taken = server.request("PUT", "/api/v1/fixtures", {"devices": [
        {"id": "carl"}, {"id": "dora", "apps": [{"bundle_id": APP, "tokens": {"voip": "AA02"}}]}]})
    assert taken.status == 422 and "anna" in taken.json["detail"]
    assert server.request("GET", "/api/v1/devices/carl").status == 404, "all or none"
    server.api("POST", "/reset")
    assert server.api("GET", "/fixtures")["devices"] == []


def test_what_is_saved_can_be_loaded(start, sample, tmp_path):
    server = start()
    assert put(server, sample).status == 200
    server.api("POST", "/devices/anna/install", {"bundle_id": "com.example.app", "environment": "production"})
    server.api("POST", "/devices/anna/restrict-power")
    server.api("POST", "/devices/bert/uninstall", {"bundle_id": "com.example.app"})
    saved = server.api("GET", "/fixtures")
    for flags, name in ((["--json"], "saved.json"), ([], "saved.yaml")):
        path = tmp_path / name
        done = server.command("fixtures", "save", *flags)
        assert done.returncode == 0 and done.stdout, done.stderr
        path.write_text(done.stdout)
        other = start("--fixtures", path)
        assert other.api("GET", "/fixtures") == saved


def test_unusual_states_are_saved_and_loaded(start, tmp_path):
    server = start()
    server.api("PUT", "/clock", {"mode": "frozen", "now": "2399-01-01T00:00:00Z"})
    server.api("PUT", "/fixtures", {"apps": [{"bundle_id": "com.acme.known"}]})
    with connect(server) as wire:
        # Over the wire, channels are created for apps that no fixture names.
        body = b'{"message-storage-policy":1,"push-type":"LiveActivity"}'
        for app, status in ((APP, 201), ("com.acme!app", 400), ("a" * 156, 400)):
            headers = [(":method", "POST"), (":scheme", "https"), (":path", f"/1/apps/{app}/channels"),
                       (":authority", server.authority), ("authorization", f"bearer {token_of_2399(server)}")]
            assert wire.push(headers, body).status == status
    server.api("PUT", "/fixtures", {"apps": [{"bundle_id": "com.acme.other"}], "devices": [
        {"id": "null", "apps": [{"bundle_id": "com.acme.other", "tokens": {"alert": "aa01"}}]}]})
    ended = []
    for _ in range(70):  # more than a device may have that are valid
        token = server.api("POST", "/devices/null/start-activity", {"bundle_id": "com.acme.other"})["tokens"]["liveactivity"]
        server.api("POST", f"/devices/{token}/end-activity")
        ended.append(token)
    server.api("PUT", "/devices/aa01", {"state": "unregistered"})
    server.api("POST", "/devices/null/force-quit", {"bundle_id": "com.acme.other"})
    saved = server.api("GET", "/fixtures")
    assert [app["bundle_id"] for app in saved["apps"]] == [APP, "com.acme.known", "com.acme.other"]
    for flags, name in ((["--json"], "saved.json"), ([], "saved.yaml")):
        (tmp_path / name).write_text(server.command("fixtures", "save", *flags).stdout)
        other = start()
        assert other.command("fixtures", "load", tmp_path / name).returncode == 0
        assert other.api("GET", "/fixtures") == saved
        assert {other.api("GET", f"/devices/{token}")["state"] for token in ended[-64:]} == {"expired"}
        assert other.api("GET", "/devices/aa01")["state"] == "unregistered"


def token_of_2399(server):
    return server.token(issued_at=int(datetime.datetime(2399, 1, 1, tzinfo=datetime.UTC).timestamp()))


def test_the_schema_describes_the_sample(start, sample):
    server = start()
    schema = server.request("GET", "/schema/fixtures.json").json
    jsonschema.Draft202012Validator.check_schema(schema)
    # YAML 1.1 reads a time as one.
    document = json.loads(json.dumps(yaml.safe_load(sample), default=lambda time: time.isoformat()))
    jsonschema.validate(document, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"devices": [{"id": "beef"}]}, schema)


def test_files_with_mistakes_prevent_the_start(binary, certs, tmp_path):
    (tmp_path / "a.yaml").write_text("devices:\n  - id: anna\n")
    (tmp_path / "b.json").write_text('{"devices": [{"id": "bert"}, {"id": "anna"}]}')
    done = serve(binary, certs, "--fixtures", tmp_path / "a.yaml", "--fixtures", tmp_path / "b.json")
    assert done.returncode == 2
    assert f"{tmp_path}/b.json:1:37: devices[1].id: the device anna is already in {tmp_path}/a.yaml:2" in done.stderr
    done = serve(binary, certs, "--fixtures", tmp_path / "none.yaml")
    assert done.returncode == 2 and "none.yaml: cannot be read" in done.stderr
    done = serve(binary, certs, "--fixtures", tmp_path / "b.json", "--max-devices", "1")
    assert done.returncode == 2 and "--max-devices" in done.stderr and "b.json:1:30" in done.stderr


def test_several_files_and_the_variable(binary, start, tmp_path):
    (tmp_path / "apps.yaml").write_text(f"apps: [{{bundle_id: {APP}}}]")
    (tmp_path / "devices.json").write_text(json.dumps(DEVICES))
    server = start(environment={"APNS_MOCK_FIXTURES": f"{tmp_path}/devices.json,{tmp_path}/apps.yaml"})
    assert [app["bundle_id"] for app in server.api("GET", "/fixtures")["apps"]] == [APP]
    assert server.api("GET", "/devices/anna")["id"] == "anna"
    server.api("POST", "/devices/carl/install", {"bundle_id": APP})
    unknown = server.request("POST", "/api/v1/devices/carl/install", {"bundle_id": "com.acme.apq"})
    assert unknown.status == 400 and f"Did you mean {APP}?" in unknown.json["hint"]


MANY = 30_000 if ALL else 6_000


def test_large_files(binary, start, tmp_path):
    """A file with many devices is loaded, a larger body or YAML file is refused with advice."""
    path = tmp_path / "many.json"
    with open(path, "w") as file:
        file.write('{"devices":[')
        for number in range(MANY):
            device = {"id": f"d-{number}", "apps": [{"bundle_id": APP, "tokens": {"alert": f"{number:064x}"}}]}
            file.write("," * (number > 0) + json.dumps(device))
        file.write("]}")
    server = start("--fixtures", path)
    status = server.api("GET", "/devices", limit=1)
    assert status["total"] == MANY
    saved = server.api("GET", "/fixtures")
    assert len(saved["devices"]) == MANY and saved["devices"][-1]["id"] == f"d-{MANY - 1}"
    (tmp_path / "large.yaml").write_text("devices: []\n" + "# comment\n" * 2_000_000)
    done = run(binary, "fixtures", "lint", tmp_path / "large.yaml")
    assert done.returncode == 2 and "write it as JSON" in done.stderr
    request = urllib.request.Request(
        f"http://{server.admin_host}:{server.admin_port}/api/v1/fixtures", method="PUT",
        headers={"content-type": "application/json", "content-length": str(65 << 20)})
    with pytest.raises(urllib.error.HTTPError) as error:
        urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=15)
    assert error.value.code == 413 and "--fixtures" in json.loads(error.value.read())["hint"]


def test_channels_are_loaded_saved_and_reset(start, sample, tmp_path):
    path = tmp_path / "fixtures.yaml"
    path.write_text(sample)
    server = start("--fixtures", path)
    (channel,) = server.api("GET", "/fixtures")["channels"]
    assert channel == {
        "bundle_id": "com.example.app", "environment": "sandbox", "id": "dHN0LXNyY2gtY2hubA==",
        "message_storage_policy": 1}
    server.api("PUT", "/fixtures", {"channels": [
        {**channel, "message_storage_policy": 0}, {**channel, "id": "AAAA"}]})
    assert [(one["id"], one["message_storage_policy"]) for one in server.api("GET", "/fixtures")["channels"]] == [
        (channel["id"], 0), ("AAAA", 1)]
    subscription = server.api("POST", "/devices/anna/subscriptions", {"channel": channel["id"]})
    assert subscription == {"channel": channel["id"], "bundle_id": "com.example.app", "environment": "sandbox"}
    assert server.api("GET", "/devices/anna/subscriptions")["items"] == [subscription]
    assert server.api("GET", "/devices/anna")["subscriptions"] == [subscription]
    server.api("DELETE", "/devices/anna/subscriptions", channel=channel["id"])
    assert server.api("GET", "/devices/anna/subscriptions")["items"] == []
    server.api("POST", "/reset", {"keep": "channels"})
    assert len(server.api("GET", "/fixtures")["channels"]) == 2
    server.api("POST", "/reset", {"channels": True})
    assert server.api("GET", "/fixtures")["channels"] == [channel]
