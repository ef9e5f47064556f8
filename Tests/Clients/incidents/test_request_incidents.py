"""The incidents of Incidents.md about requests and what they contain. Each test is named after its thread."""

import time

import httpx

from support.campaigns import again, attempts, campaign, numbers, once, shown
from support.careful import CarefulProvider
from support.incidents import findings
from support.naive import Naive
from support.wire import PROTOCOL_ERROR, connect, push_headers

ADVICE = "Correct what the violation names before sending the push again: the same request is reset each time."
HTTP_1 = {"connection": "keep-alive", "transfer-encoding": "chunked", "upgrade": "h2c"}


def test_inaka_apns4erl_211(incident):
    """Requests that are malformed in different ways have the finding, whose explanation names the header field, and the
    advice is to correct them.
    """
    server = incident.start()
    shown = incident.run()
    assert "curl ends with 92" in shown and "malformed-request" in shown and "content-length" in shown, shown

    def moved(headers):
        return headers[1:] + headers[:1]

    malformed = {
        "a pseudo-header behind a field": (":method", moved),
        "an upper-case name": ("APNS-Topic", lambda headers: headers + [("APNS-Topic", "com.example.app")]),
        **{name: (name, lambda headers, name=name, value=value: headers + [(name, value)])
           for name, value in HTTP_1.items()},
    }
    with connect(server) as wire:
        for number, (name, (field, change)) in enumerate(malformed.items()):
            token = f"{number + 16:064x}"
            response = wire.push(change(push_headers(server, token)))
            assert (response.headers, response.reset) == (None, PROTOCOL_ERROR), name
            record = server.record(token)
            assert record["findings"] == ["malformed-request"], name
            explained = server.api("GET", f"/pushes/{record['seq']}/explain")
            assert field in explained["text"], (name, explained["text"])
            assert explained["advice"] == ADVICE
        # APNs does not check a path for spaces, so this one names no device.
        assert wire.push(push_headers(server, "00 11 22")).status == 400
    assert findings(server) == {"malformed-request"}


class Batches(Naive):
    """Sends a batch again as a whole if one of its pushes got no response, on a new connection."""

    def run(self, pushes):
        for push in pushes:
            # A frame that follows a response after this time shows that the response was read.
            time.sleep(0.15)
            try:
                self.deliver(push)
            except httpx.TransportError:
                return self.run(pushes)


def test_rpush_rpush(incident):
    """A provider sends all of a batch again after its connection was reset. Another sends what had no response."""
    server = incident.start()
    incident.run()
    pushes = campaign(10)

    Batches(server).run(pushes)
    assert attempts(server) == {n: 2 if n <= 5 else 1 for n in range(10)}
    resent = {record["request"]["payload"]["n"] for record in server.pushes(finding="blind-resend")}
    assert resent == set(range(5)), "the sixth had no response"
    again(server)

    careful = CarefulProvider(server, width=1)
    careful.run(pushes)
    assert set(careful.delivered) == numbers(pushes)
    assert shown(server) == once(pushes)
    assert findings(server) == set()
