"""SETTINGS, the growing stream limit, PING and the GOAWAY for too many streams, frame by frame."""

import pathlib
import time

import pytest
from hyperframe.frame import (
    DataFrame, GoAwayFrame, HeadersFrame, PriorityFrame, RstStreamFrame, SettingsFrame, WindowUpdateFrame,
)

from support.faults import faults, line, mock, new_device, pushed  # noqa: F401 (fixtures)
from support.wire import CANCEL, NO_ERROR, REFUSED_STREAM, Closed, connect, push_headers

MAX_CONCURRENT_STREAMS = SettingsFrame.MAX_CONCURRENT_STREAMS


def first_settings(streams):
    return [
        (SettingsFrame.HEADER_TABLE_SIZE, 4096), (MAX_CONCURRENT_STREAMS, streams),
        (SettingsFrame.MAX_FRAME_SIZE, 16384), (SettingsFrame.MAX_HEADER_LIST_SIZE, 8000),
    ]


def certificate(server):
    folder = pathlib.Path(server.certs)
    return folder / "client.pem", folder / "client-key.pem"


@pytest.mark.parametrize("alpn", [("h2",), ()], ids=["alpn", "no alpn"])
def test_the_first_frame_is_settings_before_the_client_sends_anything(server, alpn):
    with connect(server, preface=False, alpn=alpn) as wire:
        first = wire.receive()
    assert isinstance(first, SettingsFrame) and "ACK" not in first.flags
    assert list(first.settings.items()) == first_settings(1)


def test_with_a_certificate_all_streams_are_allowed_at_once(server, device):
    with connect(server, certificate=certificate(server)) as wire:
        assert list(wire.settings().settings.items()) == first_settings(1000)
        assert wire.push(push_headers(server, device, authorization=None)).status == 200
        assert len(wire.own_settings()) == 1


def test_the_second_settings_precedes_the_first_accepted_response(server, device):
    with connect(server) as wire:
        assert wire.push(push_headers(server, device)).status == 200
        kinds = [
            "settings" if isinstance(frame, SettingsFrame) else "headers" for frame in wire.frames
            if isinstance(frame, HeadersFrame) or (isinstance(frame, SettingsFrame) and "ACK" not in frame.flags)
        ]
        assert kinds == ["settings", "settings", "headers"]
        assert wire.own_settings()[1].settings == {MAX_CONCURRENT_STREAMS: 1000}
        assert wire.push(push_headers(server, device)).status == 200
        assert len(wire.own_settings()) == 2, "the limit is raised once"


def test_a_valid_provider_token_raises_the_limit_even_when_the_push_is_rejected(server, device):
    with connect(server) as wire:
        assert wire.push(push_headers(server, device, apns_priority="7")).status == 400
        assert [settings.settings[MAX_CONCURRENT_STREAMS] for settings in wire.own_settings()] == [1, 1000]


@pytest.mark.parametrize("authorization", [None, "bearer a.b.c"], ids=["no token", "bad token"])
def test_without_a_valid_provider_token_the_limit_stays_at_one(server, device, authorization):
    with connect(server) as wire:
        assert wire.push(push_headers(server, device, authorization=authorization)).status == 403
        wire.ping()
        assert [settings.settings[MAX_CONCURRENT_STREAMS] for settings in wire.own_settings()] == [1]


@pytest.mark.parametrize("do", [
    {"respond": {"status": 403, "reason": "ExpiredProviderToken"}},
    {"respond": {"status": 403, "reason": "BadEnvironmentKeyInToken", "headers": {"x-a": "1"}}},
    [{"delay": {"fixed": "1ms"}}, {"respond": {"status": 403, "reason": "InvalidProviderToken"}}],
], ids=["plain", "with a header", "delayed"])
def test_an_injected_credential_error_leaves_the_limit_at_one(start, device, do):
    server = start()
    steps = do if isinstance(do, list) else [do]
    for number, step in enumerate(steps):
        server.api("POST", "/rules", {"name": f"step-{number}", "do": step, "trigger": {"first": 1}}
                   | ({"then": "continue"} if number + 1 < len(steps) else {}))
    with connect(server) as wire:
        assert wire.push(push_headers(server, device)).status == 403
        wire.ping()
        assert [settings.settings[MAX_CONCURRENT_STREAMS] for settings in wire.own_settings()] == [1]
        assert wire.push(push_headers(server, device)).status == 200
        assert [settings.settings[MAX_CONCURRENT_STREAMS] for settings in wire.own_settings()] == [1, 1000]


@pytest.mark.parametrize("profile", ["expired-jwt-403", "wrong-environment-key"])
def test_a_profile_that_rejects_the_credential_leaves_the_limit_at_one(start, device, profile):
    server = start("--profile", profile)
    token = "bearer " + server.token(issued_at=int(time.time()) - 1800)
    with connect(server) as wire:
        assert wire.push(push_headers(server, device, authorization=token)).status == 403
        wire.ping()
        assert [settings.settings[MAX_CONCURRENT_STREAMS] for settings in wire.own_settings()] == [1]


def test_streams_opened_right_after_the_first_response_are_served(server, device):
    with connect(server) as wire:
        assert wire.push(push_headers(server, device)).status == 200
        streams = [wire.open(push_headers(server, device), b"{}") for _ in range(500)]
        assert {wire.response(stream).status for stream in streams} == {200}


def refused_with_text(wire):
    """Returns the GOAWAY for too many streams, after which the server must close. It names the last processed
    stream.
    """
    goaway = wire.goaway()
    assert goaway.error_code == REFUSED_STREAM
    text = goaway.additional_data.decode("ascii")
    assert "stream" in text.lower() and not text.startswith("{"), text
    wire.read_to_end()
    assert wire.closed
    return goaway


def test_unprocessed_pushes_after_too_many_streams_may_be_sent_again(server, device):
    headers = push_headers(server, device, authorization=None)
    with connect(server) as wire:
        assert wire.push(headers).status == 403
        for _ in range(2):
            wire.open(headers, end_stream=False)
        assert refused_with_text(wire).last_stream_id == 1


def test_a_certificate_may_have_a_thousand_streams_open_and_not_one_more(server, device):
    headers = push_headers(server, device, authorization=None)
    with connect(server, certificate=certificate(server)) as wire:
        wire.settings()
        wire.ping()
        for _ in range(1000):
            wire.open(headers, end_stream=False)
        wire.ping()
        wire.open(headers, end_stream=False)
        assert refused_with_text(wire).last_stream_id == 0


def test_ping_is_acknowledged_with_its_bytes(server):
    with connect(server) as wire:
        assert wire.ping(b"\x00\xffabc\r\n\x01").opaque_data == b"\x00\xffabc\r\n\x01"


def test_priority_and_unknown_frames_change_nothing(server, device):
    with connect(server) as wire:
        wire.send(PriorityFrame(3, depends_on=1, stream_weight=200))
        wire.write(b"\x00\x00\x01\xbe\x00\x00\x00\x00\x00x")  # type 0xbe on stream 0, one byte
        assert wire.push(push_headers(server, device)).status == 200


def test_an_error_body_waits_for_the_clients_window(server, device):
    with connect(server, settings={SettingsFrame.INITIAL_WINDOW_SIZE: 0}) as wire:
        stream = wire.open(push_headers(server, device, apns_priority="7"), b"{}")
        wire.ping()
        while wire.responses[stream].headers is None:
            wire.receive()
        wire.ping()
        assert not wire.responses[stream].finished, "there was no window for a body"
        wire.send(WindowUpdateFrame(stream, window_increment=1000))
        response = wire.response(stream)
        assert (response.status, response.data, response.ended_by) == (400, [b'{"reason":"BadPriority"}'], "DATA")


def test_a_canceled_request_does_not_affect_the_next(server, device):
    with connect(server) as wire:
        stream = wire.open(push_headers(server, device), end_stream=False)
        wire.send(RstStreamFrame(stream, error_code=CANCEL))
        assert wire.push(push_headers(server, device)).status == 200


def test_a_clients_goaway_ends_the_connection(server, device):
    with connect(server) as wire:
        stream = wire.open(push_headers(server, device), b"{}")
        wire.send(GoAwayFrame(last_stream_id=0, error_code=NO_ERROR))
        assert wire.response(stream).status == 200, "requests before the GOAWAY still get responses"
        wire.read_to_end()
        assert wire.closed


def test_data_on_a_stream_never_opened_is_a_connection_error(server, device):
    with connect(server) as wire, connect(server) as neighbor:
        assert neighbor.push(push_headers(server, device)).status == 200
        try:
            wire.send(DataFrame(5, b"{}", flags=["END_STREAM"]))
            assert wire.goaway().error_code != NO_ERROR
        except Closed:
            pass  # closing without a GOAWAY is correct as well
        assert neighbor.push(push_headers(server, device)).status == 200


def test_the_first_settings_can_be_delayed(mock, faults):
    """Nothing is sent before them, and what the client sends before them is processed afterwards."""
    faults.add({"settings": {"delay": "1500ms", "max_concurrent_streams": 7}}, at="settings")
    with line(mock) as wire:
        began = time.monotonic()
        streams = [pushed(wire, mock, new_device(), b'{"aps":{"alert":"%s"}}' % (b"x" * 3000)) for _ in range(5)]
        first = wire.receive()
        assert time.monotonic() - began >= 1
        assert isinstance(first, SettingsFrame) and first.settings[MAX_CONCURRENT_STREAMS] == 7
        assert {wire.response(stream).status for stream in streams} == {200}


def test_delayed_settings_on_one_connection_do_not_delay_another(mock, faults):
    faults.add({"settings": {"delay": "50s"}}, at="settings")
    with line(mock) as wire:
        wire.sock.settimeout(0.5)
        with pytest.raises(TimeoutError):
            wire.receive()
        faults.clear()
        with line(mock) as other:
            assert other.push(push_headers(mock, new_device())).status == 200
