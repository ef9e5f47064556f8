"""The settings of a store: as flags, in a file and as variables, and what is refused."""

import pytest

from support import stores
from support.server import Server, run, stop_cleanly, wait_until
from support.wire import connect, push_headers


# Invalid settings


@pytest.mark.parametrize(("value", "says"), [
    ("sqlite", "sqlite:FILE"), ("sqlite:", "sqlite:FILE"), ("sqlit:inbox.db", "sqlite:FILE"), ("inbox.db", "sqlite:FILE"),
    ("sqlite://inbox.db", "sqlite:FILE"), ("sqlite::memory:", "sqlite:FILE"), ("SQLITE:inbox.db", "sqlite:FILE"),
    ("mysql://localhost/inbox", "sqlite:FILE"), ("disk", "memory"), ("", "memory"),
    ("sqlite:inbox.db?memory=5", "memory_records"), ("sqlite:inbox.db?memory_records=", "memory_records"),
    ("sqlite:inbox.db?memory_records=0", "memory_records"), ("sqlite:inbox.db?memory_records=-1", "memory_records"),
    ("sqlite:inbox.db?memory_records=many", "memory_records"), ("sqlite:inbox.db?memory_records=5&x=1", "memory_records"),
    ("sqlite:inbox.db?", "memory_records"),
])
def test_an_invalid_store(serve, value, says):
    message = serve("--store", value)
    assert "--store" in message and says in message


@pytest.mark.parametrize(("flags", "says"), [
    (["--durable", "always"], "answer"), (["--store-failure", "ignore"], "refuse"), (["--retain", "soon"], "--retain"),
    (["--retain", "7"], "--retain"), (["--retain=-1h"], "--retain"), (["--max-records", "0"], "--max-records"),
    (["--max-bytes", "few"], "--max-bytes"),
])
def test_an_invalid_setting_of_the_store(serve, tmp_path, flags, says):
    message = serve(*stores.flags(tmp_path / "inbox.db", *flags))
    assert says in message
    assert list(tmp_path.iterdir()) == [], "the file is created only if all settings are valid"


@pytest.mark.parametrize("flags", [["--durable", "answer"], ["--store-failure", "drop"], ["--retain", "1h"]])
def test_a_setting_of_a_store_without_a_store(serve, flags):
    """A user who sets it without `--store` expects an effect that it does not have."""
    message = serve(*flags)
    assert flags[0] in message and "--store" in message


# Valid settings


def push_once(server):
    with connect(server) as wire:
        assert wire.push(push_headers(server, "ab" * 32)).status == 200


def test_the_settings_by_variables(start, tmp_path):
    path = tmp_path / "inbox.db"
    server = start("--store", f"sqlite:{path}", environment={
        "APNS_MOCK_DURABLE": "answer", "APNS_MOCK_STORE_FAILURE": "drop", "APNS_MOCK_RETAIN": "2d",
        "APNS_MOCK_STORE": "sqlite:/nowhere/inbox.db"})
    push_once(server)
    store = stores.status(server)["store"]
    assert (store["place"], store["durable"], store["on_failure"]) == (f"sqlite:{path}", "answer", "drop")
    assert store["retain_ms"] == 172_800_000 and store["records_written"] == 1 == len(stores.pushes_view(path))


def test_the_settings_in_a_file(start, tmp_path):
    path, config = tmp_path / "inbox.db", tmp_path / "config.yaml"
    config.write_text(f"store: sqlite:{path}\ndurable: answer\nstore_failure: drop\nretain: 90m\nmax_records: 3\n")
    server = start("--config", config, environment={"APNS_MOCK_STORE": f"sqlite:{path}?memory_records=2"})
    for _ in range(5):
        push_once(server)
    store = stores.status(server)["store"]
    assert (store["durable"], store["on_failure"], store["retain_ms"]) == ("answer", "drop", 5_400_000)
    assert stores.seqs(server) == [3, 4, 5]


def test_a_relative_path_is_relative_to_the_current_folder(start, tmp_path):
    server = start("--store", "sqlite:inbox.db", directory=tmp_path)
    push_once(server)
    wait_until(lambda: len(stores.pushes_view(tmp_path / "inbox.db")) == 1, "the push is written")


@pytest.mark.parametrize("name", ["with space.db", "ünïcode.db", "a%20b.db", "semi;colon'quote.db", "hash#.db"])
def test_a_file_with_an_unusual_name(start, tmp_path, name):
    server = start("--store", f"sqlite:{tmp_path / name}")
    push_once(server)
    wait_until(lambda: (tmp_path / name).exists(), "the file exists")
    assert server.stop() == 0
    assert {one.name for one in tmp_path.iterdir()} <= {name + suffix for suffix in ("", ".lock", "-wal", "-shm")}
    assert stores.seqs(start("--store", f"sqlite:{tmp_path / name}?memory_records=1")) == [1]


def test_without_a_store_the_status_has_none(binary, certs):
    server = Server(binary, certs, "--store", "memory")
    try:
        status = stores.status(server)
        assert status["store"] is None and status["limits"]["max_records"] == 100_000
        assert b"apns_mock_store_" not in server.request("GET", "/metrics").body
    finally:
        stop_cleanly(server)


@pytest.fixture(params=["counters", "sample=1/1000000"])
def unrecorded(request, start, place):
    """A server that was sent 20 pushes and recorded none."""
    server = start(*stores.flags(place, "--record", request.param, "--durable", "answer"))
    stores.load(server, 20)
    return server


def test_pushes_that_are_not_recorded_are_not_stored(unrecorded, place):
    page = unrecorded.api("GET", "/pushes")
    assert (page["total"], page["evicted"], page["complete"]) == (0, 20, False)
    assert stores.pushes_view(place) == []


def test_pushes_that_are_not_recorded_are_counted_after_a_restart(unrecorded, start, place):
    """A count is as inconclusive as before, and `seq` is not used again."""
    assert unrecorded.stop() == 0
    server = start(*stores.flags(place))
    page = server.api("GET", "/pushes")
    assert (page["evicted"], page["complete"]) == (20, False)
    push_once(server)
    assert stores.seqs(server) == [21]


def test_exec_keeps_the_pushes_of_its_command_in_a_file(binary, certs, tmp_path):
    """Only with its flag: a variable for a long-running server must not make a test run use that server's file."""
    command = f'"{binary}" send {"ab" * 32} --topic com.example.app'
    for flags, variable in ((["--store", f"sqlite:{tmp_path / 'inbox.db'}"], None), ([], f"sqlite:{tmp_path / 'other.db'}")):
        environment = {"APNS_MOCK_STORE": variable} if variable else {}
        done = run(binary, "exec", "--certs", certs, *flags, "--", "sh", "-c", command, environment=environment)
        assert done.returncode == 0, done.stderr
    assert len(stores.pushes_view(tmp_path / "inbox.db")) == 1 and not (tmp_path / "other.db").exists()
