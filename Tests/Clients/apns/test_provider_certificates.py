"""Provider certificates: topics, environments, and invalid certificates."""

import ssl

import pytest
from hyperframe.frame import GoAwayFrame, SettingsFrame

from support.certificates import BUNDLE_ID, DEVELOPMENT, PRODUCTION, VOIP, provider_certificate
from support.wire import NO_ERROR, Closed, connect, push_headers

MANY = ("com.example.app", "com.example.app.voip", "com.example.app.complication")

CASES = [
    ("default topic of a single-topic certificate", {}, {"apns_topic": None}, 200, ""),
    ("its own topic named", {}, {}, 200, ""),
    ("a topic it does not list", {}, {"apns_topic": "com.example.other"}, 400, "TopicDisallowed"),
    ("several topics and none named", {"topics": MANY}, {"apns_topic": None}, 400, "MissingTopic"),
    ("several topics, one named", {"topics": MANY}, {"apns_topic": "com.example.app.voip", "apns_push_type": "voip"},
     200, ""),
    ("a listed complication topic", {"topics": MANY},
     {"apns_topic": "com.example.app.complication", "apns_push_type": "complication"}, 200, ""),
    ("a VoIP topic in extension 6.3.4 beside the list", {"strings": ((VOIP, "com.example.app.voip"),)},
     {"apns_topic": "com.example.app.voip", "apns_push_type": "voip"}, 200, ""),
    ("a VoIP topic in extension 6.3.4 alone", {"topics": (), "strings": ((VOIP, "com.example.app.voip"),)},
     {"apns_topic": "com.example.app.voip", "apns_push_type": "voip"}, 200, ""),
    ("its own topic beside extension 6.3.4", {"topics": (), "strings": ((VOIP, "com.example.app.voip"),)}, {}, 200, ""),
    ("another VoIP topic", {"strings": ((VOIP, "com.example.app.voip"),)},
     {"apns_topic": "com.example.other.voip", "apns_push_type": "voip"}, 400, "TopicDisallowed"),
    ("the bundle id in extension 6.3.3", {"uid": None, "topics": (), "strings": ((BUNDLE_ID, "com.example.app"),)},
     {"apns_topic": None}, 200, ""),
    ("a bad provider token beside it is ignored", {}, {"authorization": "bearer a.b.c"}, 200, ""),
    ("both environments", {"marks": (DEVELOPMENT, PRODUCTION)}, {}, 200, ""),
    ("no extension of Apple's", {"uid": None, "topics": (), "marks": ()}, {}, 403, "BadCertificate"),
]


@pytest.mark.parametrize(("made", "changes", "status", "reason"), [case[1:] for case in CASES],
                         ids=[case[0] for case in CASES])
def test_certificates_determine_the_response(server, tmp_path, device, made, changes, status, reason):
    pair = provider_certificate(server.certs, tmp_path, **made)
    with connect(server, certificate=pair) as wire:
        response = wire.push(push_headers(server, device, **{"authorization": None, **changes}))
    assert (response.status, response.body) == (status, b'{"reason":"%s"}' % reason.encode() if reason else b"")
    assert server.record(device)["auth"]["kind"] == "certificate"


@pytest.mark.parametrize(("environment", "mark"), [("sandbox", PRODUCTION), ("production", DEVELOPMENT)])
def test_a_certificate_of_the_other_environment_gets_goaway_and_no_response(
        start, tmp_path, device, environment, mark):
    server = start("--environment", environment)
    pair = provider_certificate(server.certs, tmp_path, marks=(mark,))
    with connect(server, certificate=pair) as wire:
        try:
            wire.open(push_headers(server, device, authorization=None), b"{}")
        except Closed:
            pass  # the connection may already be closed
        frames = [frame for frame in wire.read_to_end() if not (isinstance(frame, SettingsFrame) and frame.flags)]
    assert [type(frame) for frame in frames] == [SettingsFrame, GoAwayFrame]
    assert frames[0].settings[SettingsFrame.MAX_CONCURRENT_STREAMS] == 1000
    assert (frames[1].last_stream_id, frames[1].error_code) == (0, NO_ERROR)
    assert frames[1].additional_data == b'{"reason":"BadCertificateEnvironment"}'
    assert server.pushes(accepted="true") == []


def test_an_expired_certificate_is_refused_in_the_handshake(server, tmp_path):
    pair = provider_certificate(server.certs, tmp_path, expired=True)
    with pytest.raises(ssl.SSLError, match="(?i)expired"):
        with connect(server, certificate=pair) as wire:
            wire.sock.recv(1)  # with TLS 1.3 the alert arrives after the client has completed its handshake
