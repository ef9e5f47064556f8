"""The commands `device` and `fixtures`."""

import contextlib
import datetime
import json
import queue
import subprocess
import threading
import time

import pytest

from support.server import clean_environment, run
from support.wire import connect, push_headers

APP = "com.example.app"


@pytest.fixture
def server(start, binary, tmp_path):
    """A server with the devices of the sample."""
    path = tmp_path / "fixtures.yaml"
    path.write_text(run(binary, "fixtures", "sample").stdout)
    return start("--fixtures", path)


def ok(server, *arguments, **options):
    done = server.command(*arguments, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_life_of_a_device(server):
    assert ok(server, "device", "offline", "anna") == "anna: offline, 0 shown, 0 stored\n"
    assert json.loads(ok(server, "device", "restrict-power", "anna", "--json"))["state"] == "power_restricted"
    assert ok(server, "device", "online", "anna").startswith("anna: online")
    assert ok(server, "device", "disable", "anna", APP) == f"{APP} on anna: disabled (sandbox)\n"
    assert ok(server, "device", "enable", "anna", APP) == f"{APP} on anna: enabled (sandbox)\n"
    installed = ok(server, "device", "install", "carl", APP, "--push-type", "alert", "--push-type", "voip")
    kinds, tokens = zip(*(line.split("\t") for line in installed.splitlines()))
    assert kinds == ("alert", "voip") and all(len(token) == 64 for token in tokens)
    again = json.loads(ok(server, "device", "reinstall", "carl", APP, "--json"))["tokens"]
    assert set(again) == {"alert", "voip"} and again["alert"] not in tokens
    assert "removed" in ok(server, "device", "uninstall", "carl", APP)
    token = ok(server, "device", "start-activity", "anna", APP).split("\t")[1].strip()
    former, token = token, ok(server, "device", "rotate-activity-token", token).split("\t")[1].strip()
    assert token != former and f"- token: {token}\n" in ok(server, "device", "show", "anna").split("activities:")[1]
    assert ok(server, "device", "end-activity", token) == f"{token} expired\n"
    shown = ok(server, "device", "show", "anna")
    assert shown.startswith("id: anna\nstate: online\n") and f"- token: {token}" in shown
    assert json.loads(ok(server, "device", "show", token, "--json"))["state"] == "expired"


def test_apps_are_force_quit_and_launched(server):
    assert ok(server, "device", "force-quit", "anna", APP) == f"{APP} on anna: force_quit (sandbox)\n"
    assert ok(server, "device", "launch", "anna", APP) == f"{APP} on anna: enabled (sandbox)\n"


def test_tokens_are_registered_and_unregistered(server, device):
    def answer(topic=APP):
        with connect(server) as wire:
            response = wire.push(push_headers(server, device, apns_topic=topic))
        return response.status, json.loads(response.body or b"{}")

    assert ok(server, "device", "register", device, "--topic", APP).startswith(f"{device}: online since 20")
    assert answer() == (200, {})
    assert answer("com.other") == (400, {"reason": "DeviceTokenNotForTopic"})
    since = "2026-01-31T12:00:00.000Z"
    assert ok(server, "device", "unregister", device, "--since", since) == f"{device}: unregistered since {since}\n"
    assert answer() == (410, {"reason": "Unregistered", "timestamp": 1769860800000})
    assert answer("com.other") == (400, {"reason": "DeviceTokenNotForTopic"}), "it keeps its topic"
    ok(server, "device", "register", device, "--environment", "production")
    assert answer() == (400, {"reason": "BadDeviceToken"})
    before = time.time() * 1000
    shown = json.loads(ok(server, "device", "unregister", "ab12", "--json"))
    assert (shown["state"], shown["topic"], shown["environment"]) == ("unregistered", None, None)
    assert abs(datetime.datetime.fromisoformat(shown["since"]).timestamp() * 1000 - before) < 60_000
    for arguments in (("register", "xyz"), ("unregister", "ab1"), ("unregister", device, "--since", "soon")):
        done = server.command("device", *arguments)
        assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, done.stderr


def test_what_is_too_large_for_yaml_is_saved_as_json(server, tmp_path):
    """`fixtures load` limits YAML more than JSON, so `fixtures save` does."""
    devices = [
        {"id": f"d-{number}", "apps": [
            {"bundle_id": APP, "tokens": {"alert": [f"{64 * number + index:0200x}" for index in range(64)]}}]}
        for number in range(340)]
    server.api("PUT", "/fixtures", {"devices": devices})
    refused = server.command("fixtures", "save", tmp_path / "many.yaml")
    assert refused.returncode == 2 and "ends in .json" in refused.stderr
    assert not (tmp_path / "many.yaml").exists()
    ok(server, "fixtures", "save", str(tmp_path / "many.json"))
    ok(server, "fixtures", "load", str(tmp_path / "many.json"))


def test_the_list_of_tokens(server):
    lines = [line.split("\t") for line in ok(server, "device", "ls").splitlines()]
    assert [(line[0], line[2]) for line in lines] == [
        ("anna", "alert"), ("anna", "voip"), ("anna", "liveactivity"), ("anna", "liveactivity"), ("bert", "alert")]
    objects = [json.loads(line) for line in ok(server, "device", "ls", "--json").splitlines()]
    assert [one["token"] for one in objects] == [line[1] for line in lines]


@pytest.mark.timeout(60)
def test_notifications(server, binary):
    token = server.api("GET", "/devices")["items"][0]["token"]
    follower = subprocess.Popen(
        [str(binary), "device", "notifications", "anna", "--follow", "--port-file", str(server.port_file)],
        stdout=subprocess.PIPE, text=True, env=clean_environment())
    try:
        lines = queue.SimpleQueue()
        threading.Thread(target=lambda: [lines.put(line) for line in follower.stdout], daemon=True).start()
        received = None
        with connect(server) as wire:
            # The follower may start after the first pushes.
            while received is None:
                assert wire.push(push_headers(server, token), b'{"aps":{"alert":"Hello"}}').status == 200
                with contextlib.suppress(queue.Empty):
                    received = json.loads(lines.get(timeout=0.2))
        assert received["payload"] == {"Simulator Target Bundle": APP, "aps": {"alert": "Hello"}}
    finally:
        follower.terminate()
        follower.wait()
    assert "alert: Hello" in ok(server, "device", "notifications", "anna")


@pytest.mark.timeout(60)
def test_the_token_of_an_activity_that_a_push_starts(server, binary):
    """A follower of all devices prints it, and nothing else if only that is wanted."""
    start = ok(server, "device", "install", "carl", APP, "--push-type", "liveactivity_start").split("\t")[1].strip()
    follower = subprocess.Popen(
        [str(binary), "device", "notifications", "--follow", "--event", "activity.started", "--bundle-id", "com.*", "--port-file",
         str(server.port_file)], stdout=subprocess.PIPE, text=True, env=clean_environment())
    try:
        lines = queue.SimpleQueue()
        threading.Thread(target=lambda: [lines.put(line) for line in follower.stdout], daemon=True).start()
        received = None
        payload = {"aps": {"timestamp": int(time.time()), "event": "start", "content-state": {}, "attributes-type": "Ride",
                           "attributes": {}, "alert": "Off"}}
        with connect(server) as wire:
            # The follower may start after the first pushes.
            while received is None:
                headers = push_headers(server, start, apns_topic=APP + ".push-type.liveactivity", apns_push_type="liveactivity")
                assert wire.push(headers, json.dumps(payload).encode()).status == 200
                with contextlib.suppress(queue.Empty):
                    received = json.loads(lines.get(timeout=0.2))
        assert received["event"] == "activity.started" and received["attributes_type"] == "Ride"
        tokens = [one["token"] for one in server.api("GET", "/devices/carl")["activities"]]
        assert received["device"] == "carl" and received["token"] in tokens
    finally:
        follower.terminate()
        follower.wait()


@pytest.mark.parametrize(("arguments", "code", "words"), [
    (["device", "online", "ana"], 1, ["there is no device ana", "Did you mean anna?"]),
    (["device", "onlin", "anna"], 2, ["did you mean online?"]),
    (["device", "disable", "anna", "com.exampel.app"], 2, ["Did you mean com.example.app?"]),
    (["device", "install", "anna", APP], 1, ["installed already", "reinstall"]),
    (["device", "install", "beef", APP], 2, ["is not the id of a device"]),
    (["device", "install", "carl", APP + ".voip"], 2, ["write com.example.app".capitalize()]),
    (["device", "install", "carl", APP, "--push-type", "alrt"], 2, ["Did you mean alert?"]),
    (["device", "install", "carl", APP, "--environment", "prod"], 2, ["sandbox, production"]),
    (["device", "end-activity", "abcd"], 1, ["not registered"]),
    (["device", "rotate-activity-token", "abcd"], 1, ["not registered"]),
    (["device", "notifications"], 2, ["--follow"]), (["device", "notifications", "anna", "--event", "activity.ended"], 2, ["--follow"]),
    (["device", "notifications", "--follow", "--event", "started"], 2, ["activity.started"]),
    (["device", "notifications", "anna", "--follow", "--push-type", "alert"], 2, ["omit the id"]),
    (["device", "notifications", "--follow", "--push-type", "alrt"], 2, ["Did you mean alert?"]),
    (["device", "subscribe", "anna", "AAAA"], 1, ["there is no channel AAAA"]),
    (["device", "unsubscribe", "anna", "AAAA"], 1, ["not subscribed"]),
    (["device", "notifications", "ana", "--follow"], 1, ["Did you mean anna?"]),
    (["fixtures", "lad"], 2, ["did you mean load?"]),
])
def test_mistakes(server, arguments, code, words):
    done = server.command(*arguments)
    assert done.returncode == code, done.stderr
    assert done.stdout == "" and all(word in done.stderr for word in words), done.stderr


def test_fixtures_are_checked_loaded_and_saved(server, binary, tmp_path):
    path = tmp_path / "new.yaml"
    path.write_text("devices:\n  - {id: carl, state: offlin}\n")
    done = run(binary, "fixtures", "lint", path)
    assert (done.returncode, done.stdout) == (2, "1 problem\n")
    expected = f'error: {path}:2:23: devices[0].state: unknown value "offlin", did you mean "offline"?\n'
    assert done.stderr == expected
    assert json.loads(run(binary, "fixtures", "lint", path, "--json").stdout)["problems"][0]["line"] == 2
    done = server.command("fixtures", "load", path)
    assert (done.returncode, done.stderr) == (2, expected)
    path.write_text("devices:\n  - {id: carl, state: offline}\n")
    assert run(binary, "fixtures", "lint", path).stdout == "valid: 0 apps, 1 device, 0 channels\n"
    assert ok(server, "fixtures", "load", path) == "0 apps, 1 device, 0 channels loaded\n"
    assert ok(server, "fixtures", "load", "-", input='{"devices":[{"id":"dora"}]}').endswith("loaded\n")
    ids = [device["id"] for device in json.loads(ok(server, "fixtures", "save", "--json"))["devices"]]
    assert ids == ["anna", "bert", "carl", "dora"]
    for name in ("saved.yaml", "saved.json"):
        ok(server, "fixtures", "save", tmp_path / name)
        assert run(binary, "fixtures", "lint", tmp_path / name).stdout == "valid: 1 app, 4 devices, 1 channel\n"
