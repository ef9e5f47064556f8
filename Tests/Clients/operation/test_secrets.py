"""Secrets that must not be disclosed: JWT signatures, complete device tokens in logs, private keys anywhere."""

import json
import pathlib
import socket

import pytest

from support.server import Server, stop_cleanly
from support.stores import everything
from support.wire import TIMEOUT, Wire, connect, push_headers


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_the_log_contains_no_secret(start, device, log_format):
    server = start("--log-level", "trace", "--log-format", log_format)
    token = server.token()
    signature = token.split(".")[2]
    with connect(server) as wire:
        assert wire.push(push_headers(server, device, authorization="bearer " + token)).status == 200
        wire.push(push_headers(server, device, apns_priority="7"))
        wire.push(push_headers(server, device, authorization="bearer " + token + "x"))
        wire.push(push_headers(server, device, path_=f"/3/devices/{device}"))
        wire.push(push_headers(server, device, ("x-pad", "p" * 9000)))
        wire.push(push_headers(server, device, ("Upper-Case", device)))
    http1 = f"POST /3/device/{device} HTTP/1.1\r\nauthorization: bearer {token}\r\n\r\n".encode()
    plain = Wire(socket.create_connection(("127.0.0.1", server.port), timeout=TIMEOUT), preface=False)
    for wire in (connect(server, preface=False), plain):
        with wire:
            wire.write(http1)
            wire.read_to_end()
    assert server.stop() == 0
    text = server.log() + server.output()
    assert signature not in text
    assert device[4:12] not in text.lower(), "of a device token, the first four and the last two digits may be logged"
    for line in pathlib.Path(server.key_path).read_text().splitlines():
        assert line.startswith("---") or line not in text


def test_the_api_never_shows_a_signature(server, device):
    token = server.token()
    head, claims, signature = token.split(".")
    with connect(server) as wire:
        wire.push(push_headers(server, device, authorization="bearer " + token))
        wire.push(push_headers(server, device, authorization="Bearer " + token))
        wire.push(push_headers(server, device, authorization=f"bearer {head}.{claims}.{signature}.{signature}"))
        wire.push(push_headers(server, device, authorization=f"bearer {head}.{claims}. {signature}"))
        wire.push(push_headers(server, device, ("authorization", "bearer " + token)))
    records = server.pushes(device_token=device)
    assert len(records) == 5
    shown = str(records) + str([server.api("GET", f"/pushes/{record['seq']}") for record in records])
    assert signature not in shown
    assert claims in str(records[0]["request"]["headers"]), "the part that is no secret may be shown"


@pytest.fixture(scope="module")
def plain(binary, certs):
    running = Server(binary, certs, "--apns-plain", "127.0.0.1:0", "--log-level", "trace")
    yield running
    stop_cleanly(running)


def test_a_token_outside_of_authorization_is_shown_without_signature(plain, device, tmp_path):
    """Wherever a provider puts it: records, exports, findings, the log and what is imported have the rest of it."""
    token = plain.token()
    message, signature = token.rsplit(".", 1)
    with connect(plain) as wire:
        for name in ("proxy-authorization", "x-authorization", "apns-topic", "apns-collapse-id", "apns-id", "apns-push-type", "user-agent"):
            wire.push(push_headers(plain, device, **{name.replace("-", "_"): f"Bearer {token}"}))
        wire.push(push_headers(plain, device, ("cookie", f"a=b; jwt={token}; c=d"), ("cookie", token)))
        wire.push(push_headers(plain, device, ("authorization", token), ("x-token", f"{token},{token}")))
        for path in (f"/3/device/{token}", f"/3/device/{device}?jwt={token}&x=y", f"/{token}", f"/1/apps/{token}/channels"):
            wire.push(push_headers(plain, device, path_=path))
    with socket.create_connection(("127.0.0.1", plain.facts["apns_plain"][0]["port"]), timeout=TIMEOUT) as sock:
        sock.sendall(f"POST /3/device/{device}?jwt={token} HTTP/1.1\r\nhost: localhost\r\nx-token: {token}\r\n"
                     "connection: close\r\ncontent-length: 2\r\n\r\n{}".encode())
        while sock.recv(65536):
            pass
    records = everything(plain)
    assert len(records) == 14
    for record in records:
        others = [value for name, value in record["request"]["headers"] if name != "authorization"]
        assert any(f"{message}.…" in text for text in [record["request"]["path"], *others]), record
    shown = [json.dumps(records), json.dumps(plain.api("GET", "/findings")), plain.log(), plain.output()]
    shown += [json.dumps(plain.api("GET", f"/pushes/{record['seq']}")) for record in records]
    exports = {name: plain.request("GET", "/api/v1/export", format=name, kind="*").body for name in ("ndjson", "json", "har", "csv")}
    shown += [export.decode() for export in exports.values()]
    assert not [text for text in shown if signature in text]
    sockets = [value for record in records for _, value in record["request"]["headers"]]
    assert f"a=b; jwt={message}.…; c=d" in sockets
    again = plain.request("POST", "/api/v1/import", exports["ndjson"], headers={"content-type": "application/x-ndjson"})
    assert again.status == 200, again.body
    for record, copy in zip(records, everything(plain)[len(records):], strict=True):
        assert copy["request"]["headers"] == record["request"]["headers"]
        assert copy["request"]["path"] == record["request"]["path"]
        assert copy["verdict"] == record["verdict"]


def test_status_and_port_file_contain_no_key(server):
    text = str(server.api("GET", "/status")) + server.port_file.read_text()
    assert "PRIVATE KEY" not in text
