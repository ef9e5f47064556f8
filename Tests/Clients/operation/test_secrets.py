"""Secrets that must not be disclosed: JWT signatures, complete device tokens in logs, private keys anywhere."""

import pathlib
import socket

import pytest

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


def test_status_and_port_file_contain_no_key(server):
    text = str(server.api("GET", "/status")) + server.port_file.read_text()
    assert "PRIVATE KEY" not in text
