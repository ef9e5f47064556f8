"""The oracle of `make campaigns` (support/conducts/oracle.py), as tables: frames, and what they mean."""

import pytest

from support.conducts import oracle, rules
from support.conducts.relay import CLIENT, FIN, RESET, SERVER, Event


def frames(text):
    """Returns the events of lines such as `0.5 c2 > 3 push a1` or `0.6 c2 < goaway 1`, separated by `;`.

    `push a1` is a whole request of push `a` with the apns-id `a1`, to the device `a`; `open` is one without its DATA.
    `token=x`, `device=x` and `length=1`, of `content-length`, change it.
    """
    events = []
    for line in text.split(";"):
        at, connection, arrow, *words = line.split()
        connection, side = int(connection[1:]), CLIENT if arrow == ">" else SERVER

        def add(kind, stream=0, **details):
            events.append(Event(float(at), connection, side, kind, stream, **details))

        if words[0].isdigit():
            add_stream_frames(add, int(words[0]), *words[1:])
        elif words[0] == "goaway":
            add("GOAWAY", last_stream=int(words[1]), code=0)
        elif words[0] == "settings":
            add("SETTINGS", is_ack=words[1] == "ack", settings={} if words[1] == "ack" else {3: int(words[1])})
        elif words[0] == "ping":
            add("PING", data=b"12345678", is_ack=words[1:] == ["ack"])
        else:
            add({"fin": FIN, "rst": RESET, "window": "WINDOW_UPDATE"}[words[0]])
    return events


def add_stream_frames(add, stream, what, *more):
    if what in ("push", "open"):
        apns_id, *changes = more
        changed = {"device": apns_id[0], "token": "t", **dict(change.split("=") for change in changes)}
        headers = {":path": f"/3/device/{changed['device']}", "apns-topic": "app", "apns-id": apns_id,
                   "authorization": f"bearer {changed['token']}"}
        if "length" in changed:
            headers["content-length"] = changed["length"]
        add("HEADERS", stream, headers=headers)
        if what == "push":
            add("DATA", stream, data=b'{"n":"%s"}' % apns_id[0].encode(), ends_stream=True)
    elif what == "reset":
        add("RST_STREAM", stream, code=int(more[0]))
    elif what == "header":
        add("HEADERS", stream, headers={":status": more[0]})
    elif more:
        add("HEADERS", stream, headers={":status": what})
        add("DATA", stream, data=b'{"reason":"%s"}' % more[0].encode(), ends_stream=True)
    else:
        add("HEADERS", stream, headers={":status": what}, ends_stream=True)


def read(text):
    events = frames(text)
    ids = {event.headers["apns-id"] for event in events if event.headers and "apns-id" in event.headers}
    return oracle.read(events, {apns_id: apns_id[0] for apns_id in ids})


def known(text, *decisions):
    """Returns the connections and the attempts of a run whose endings are certain. `decisions`: what APNs did with those
    attempts whose frames do not show it.
    """
    connections, attempts = read(text)
    decided, found = list(decisions), []
    for attempt in attempts:
        (ending,) = oracle.endings(attempt)
        possible = oracle.decisions(attempt, ending)
        found.append(oracle.Known(attempt, possible.pop() if len(possible) == 1 else decided.pop(0), ending))
    assert not decided
    return connections, found


A = "0 c1 > 1 push a1"  # at 0 s


@pytest.mark.parametrize("text, endings, decisions", [
    (f"{A}; .1 c1 < 1 200", "response", "accepted"),
    (f"{A}; .1 c1 < 1 503 ServiceUnavailable", "response", "rejected"),
    (f"{A}; .1 c1 < 1 200; .2 c1 < goaway 0; .3 c1 < fin", "response", "accepted"),
    (f"{A}; .1 c1 < 1 reset 7", "refused", "not_processed"),
    (f"{A}; .1 c1 < goaway 0; .1 c1 < fin", "refused", "not_processed"),
    (f"{A}; .1 c1 < goaway 1; .5 c1 < fin", "disconnected", "accepted not_processed rejected"),
    ("0 c1 < goaway 0; 1 c1 > 1 push a1; 2 c1 < fin", "refused", "not_processed"),
    (f"{A}; .1 c1 < 1 reset 2", "reset", "accepted not_processed rejected"),
    (f"{A}; .1 c1 < 1 header 200; .2 c1 < 1 reset 2", "reset", "accepted"),
    (f"{A}; .1 c1 < 1 header 500; .5 c1 < rst", "disconnected response", "rejected"),
    (f"{A}; .1 c1 > 1 reset 8; .5 c1 > fin", "cancelled", "accepted not_processed rejected"),
    (f"{A}; .1 c1 > 1 reset 8; .5 c1 < fin", "cancelled", "accepted not_processed rejected"),
    (f"{A}; .1 c1 > 1 reset 8; .15 c1 < goaway 0; .5 c1 < fin", "cancelled refused", "not_processed"),
    (f"{A}; .1 c1 < goaway 0; .11 c1 > 1 reset 8; .5 c1 < fin", "refused", "not_processed"),
    (f"{A}; .5 c1 < rst", "disconnected response", "accepted not_processed rejected"),
    (f"{A}; .1 c1 > fin", "disconnected response", "accepted not_processed rejected"),
    ("0 c1 > 1 open a1; .1 c1 < fin", "incomplete", "not_processed"),
    ("0 c1 > 1 open a1; .1 c1 > fin", "incomplete", "not_processed"),
    ("0 c1 > 1 open a1; .1 c1 > 1 reset 8; 1 c1 > fin", "cancelled", "not_processed"),
    ("0 c1 > 1 open a1; .1 c1 < goaway 1; 1 c1 < fin", "incomplete", "not_processed"),
    ("0 c1 > 1 open a1; .1 c1 < 1 413 PayloadTooLarge", "response", "rejected"),
    ("0 c1 > 1 push a1 length=999; .1 c1 < 1 reset 1", "malformed", "not_processed"),
    ("0 c1 > 1 push a1 length=999; .1 c1 > 1 reset 8", "malformed", "not_processed"),
    ("0 c1 > 1 push a1 length=999; .01 c1 < goaway 0; .1 c1 < fin", "malformed refused", "not_processed"),
    ("0 c1 > 1 push a1 length=999; .1 c1 < rst", "malformed incomplete", "not_processed"),
    ("0 c1 > 1 push a1 length=999; .5 c1 < rst", "malformed", "not_processed"),
    (f"{A}; .05 c1 < fin", "disconnected incomplete", "not_processed"),
    (A, "pending", "accepted not_processed rejected"),
])
def test_one_attempt(text, endings, decisions):
    _, (attempt,) = read(text)
    possible = oracle.endings(attempt)
    assert possible == set(endings.split())
    assert set.intersection(*(oracle.decisions(attempt, ending) for ending in possible - {"response"} or {"response"})) \
        == set(decisions.split())


@pytest.mark.parametrize("decision, ending, outcome", [
    ("accepted", "response", "accepted"), ("rejected", "response", "rejected"),
    ("accepted", "reset", "response_lost"), ("rejected", "disconnected", "response_lost"),
    ("accepted", "cancelled", "response_lost"), ("not_processed", "reset", "unanswered"),
    ("not_processed", "disconnected", "unanswered"), ("not_processed", "cancelled", "unanswered"),
    ("not_processed", "refused", "unprocessed"), ("not_processed", "incomplete", "incomplete"),
    ("not_processed", "malformed", "malformed"), ("pending", "pending", "pending"), ("accepted", "pending", "pending"),
])
def test_outcome(decision, ending, outcome):
    assert oracle.outcome(decision, ending) == outcome


LOST = f"{A}; .1 c1 < 1 reset 2"
READ = f"{A}; .1 c1 < 1 200; .5 c1 > window"  # the client has shown that it read the response
UNREAD = f"{A}; .1 c1 < 1 200; .11 c1 < rst"


@pytest.mark.parametrize("text, decisions, numbers, finals, is_lost, is_duplicate, is_blind", [
    (READ, [], [1], ["accepted"], False, False, False),
    (f"{A}; .1 c1 < 1 503 ServiceUnavailable", [], [1], ["rejected"], True, False, False),
    (f"{A}; .1 c1 < 1 400 BadDeviceToken", [], [1], ["rejected"], False, False, False),
    (f"{A}; .1 c1 < 1 403 ExpiredProviderToken", [], [1], ["rejected"], True, False, False),
    (f"{A}; .1 c1 < 1 503 X; 1 c1 > 3 push a1; 1.1 c1 < 3 200; 2 c1 > window", [], [1, 2], ["accepted"], False, False, False),
    # Attempts that were incomplete or not processed count.
    ("0 c1 > 1 open a1; .1 c1 < fin; 1 c2 > 1 push a1; 1.1 c2 < 1 503 X", [], [1, 2], ["rejected"], True, False, False),
    (f"{A}; .1 c1 < goaway 0; 1 c2 > 1 push a1; 1.1 c2 < 1 503 X", [], [1, 2], ["rejected"], True, False, False),
    # An incomplete attempt arrives when it ends: here it is the second of a sequence, and the first of another one.
    ("0 c1 > 1 open a1; 1 c2 > 1 push a1; 1.1 c2 < 1 503 X; 2 c1 < fin", [], [1, 2], ["incomplete"], True, False, False),
    ("0 c1 > 1 open a1; 1 c2 > 1 push a1; 1.1 c2 < 1 200; 2 c1 < fin; 3 c2 > fin", [], [1, 1], ["accepted", "incomplete"], False,
     False, False),
    (LOST, ["not_processed"], [1], ["unanswered"], True, False, False),
    (LOST, ["accepted"], [1], ["response_lost"], False, False, False),
    # A retry of what had arrived: the same notification, another one, and one that failed.
    (f"{LOST}; 1 c1 > 3 push a1; 1.1 c1 < 3 200", ["accepted"], [1, 2], ["accepted"], False, False, False),
    (f"{LOST}; 1 c1 > 3 push a2; 1.1 c1 < 3 200", ["accepted"], [1, 2], ["accepted"], False, True, False),
    (f"{LOST}; 1 c1 > 3 push a2; 1.1 c1 < 3 503 X", ["accepted"], [1, 2], ["rejected"], False, False, False),
    # A response that may not have been read.
    (f"{UNREAD}; 1 c2 > 1 push a1; 1.1 c2 < 1 200", [], [1, 1], ["accepted"], False, False, False),
    (f"{UNREAD}; 1 c2 > 1 push a2; 1.1 c2 < 1 200", [], [1, 1], ["accepted"], False, True, False),
    # A response that was read.
    (f"{READ}; 1 c1 > 3 push a1; 1.1 c1 < 3 200", [], [1, 1], ["accepted"], False, False, True),
    (f"{READ}; 1 c1 > 3 push a2; 1.1 c1 < 3 200", [], [1, 1], ["accepted"], False, False, False),
    (f"{READ}; .6 c1 < rst; 1 c2 > 1 push a2; 1.1 c2 < 1 200", [], [1, 1], ["accepted"], False, False, True),
    (f"{A}; .1 c1 < 1 200; .1 c1 < goaway 1; .12 c1 > fin; 1 c2 > 1 push a2; 1.1 c2 < 1 200", [], [1, 1], ["accepted"], False,
     False, True),
    (f"{A}; .1 c1 < 1 200; .12 c1 > fin; 1 c2 > 1 push a1; 1.1 c2 < 1 200", [], [1, 1], ["accepted"], False, False, True),
    (f"{A}; .1 c1 < 1 200; .11 c1 < ping; .12 c1 > ping ack; .2 c1 > 3 push a1; .3 c1 < 3 200", [], [1, 1], ["accepted"], False,
     False, True),
    (f"{READ}; 1 c1 > 3 push a1; 1.1 c1 < 3 503 X", [], [1, 1], ["accepted", "rejected"], False, False, True),
    (f"{READ}; 1 c1 > 3 push a2; 1.1 c1 < 3 503 X", [], [1, 1], ["accepted", "rejected"], None, False, False),
    # Too close to the limit of 100 ms.
    (f"{A}; .1 c1 < 1 200; .21 c1 > window; .22 c1 < rst; 1 c2 > 1 push a2; 1.1 c2 < 1 200", [], [1, 1], ["accepted"], False,
     None, None),
])
def test_one_push(text, decisions, numbers, finals, is_lost, is_duplicate, is_blind):
    _, attempts = known(text, *decisions)
    assert [max(possible) for possible in rules.attempt_numbers(attempts).values()] == numbers
    assert sorted({sequence[-1].outcome for sequence in rules.sequences(attempts)}) == finals
    assert rules.is_lost(attempts) is is_lost
    assert rules.is_duplicate(attempts) is is_duplicate
    assert rules.is_blind_resend(attempts) is is_blind


@pytest.mark.parametrize("text, finals", [
    ("0 c1 > 1 open a1; 1 c2 > 1 push a1; 1.1 c2 < 1 410 Unregistered; 2 c1 < fin", {"rejected", "incomplete"}),
    ("0 c1 > 1 open a2; 1 c2 > 1 push a1; 1.1 c2 < 1 410 Unregistered; 2 c1 < fin", {"incomplete"}),
    ("0 c1 > 1 open a1; 1 c2 > 1 push a1; 1.1 c2 < 1 503 X; 2 c1 < fin", {"incomplete"}),
])
def test_ends_of_a_sequence(text, finals):
    _, attempts = known(text)
    assert [rules.finals(sequence) for sequence in rules.sequences(attempts)] == [finals]


@pytest.mark.parametrize("function, text, must, may", [
    (rules.retried_permanent, f"{A}; .1 c1 < 1 400 BadTopic; 1 c1 > 3 push a1; 1.1 c1 < 3 200", {3}, set()),
    (rules.retried_permanent, f"{A}; .1 c1 < 1 400 BadTopic; 1 c1 > 3 open a1; 1.1 c1 < fin", set(), {3}),
    (rules.retried_permanent, f"{A}; .1 c1 < 1 410 Unregistered; 1 c1 > 3 push a1; 1.1 c1 < 3 200", set(), set()),
    (rules.retried_permanent, f"{A}; .1 c1 < 1 503 X; 1 c1 > 3 push a1; 1.1 c1 < 3 200", set(), set()),
    (rules.retried_permanent, f"{A}; .1 c1 < 1 403 ExpiredProviderToken; 1 c1 > 3 push a1; 1.1 c1 < 3 200", {3}, set()),
    (rules.retried_permanent, f"{A}; .1 c1 < 1 403 ExpiredProviderToken; 1 c1 > 3 push a1 token=u; 1.1 c1 < 3 200", set(), set()),
    (rules.hot_retries, f"{A}; .02 c1 < 1 503 X; .03 c1 > 3 push a1; .04 c1 < 3 200", {3}, set()),
    (rules.hot_retries, f"{A}; .1 c1 < 1 503 X; .19 c1 > 3 push a1; .2 c1 < 3 200", set(), {3}),
    (rules.hot_retries, f"{A}; .1 c1 < 1 503 X; .11 c1 > 3 push a1; .5 c1 < 3 200", set(), {3}),
    (rules.hot_retries, f"{A}; .1 c1 < 1 503 X; .11 c2 > 1 push a1; .12 c2 < goaway 0; .13 c3 > 1 push a1; .2 c3 < 1 200",
     set(), {1}),
    (rules.hot_retries, f"{A}; .1 c1 < 1 503 X; .5 c1 > 3 push a1; .6 c1 < 3 200", set(), set()),
    (rules.hot_retries, f"{A}; .1 c1 < 1 503 Shutdown; .11 c2 > 3 push a1; .2 c2 < 3 200", set(), set()),
    # The server has reset the connection, so that the response may be lost after the relay has received it; or the client had shown
    # before that it read the response, or sends again before the reset.
    (rules.hot_retries, f"{A}; .02 c1 < 1 503 X; .03 c1 < rst; .05 c2 > 3 push a1; .06 c2 < 3 200", set(), {3}),
    (rules.hot_retries, f"{A}; .02 c1 < 1 503 X; .03 c1 > fin; .05 c2 > 3 push a1; .06 c2 < 3 200", {3}, set()),
    (rules.hot_retries, f"{A}; .02 c1 < 1 503 X; .03 c2 > 3 push a1; .04 c2 < 3 200; .5 c1 < rst", {3}, set()),
    (rules.retried_permanent, f"{A}; .1 c1 < 1 400 BadTopic; .11 c1 < rst; 1 c2 > 3 push a1; 1.1 c2 < 3 200", set(), {3}),
    (rules.retried_permanent, f"{A}; .1 c1 < 1 400 BadTopic; .5 c1 > window; .6 c1 < rst; 1 c2 > 3 push a1; 1.1 c2 < 3 200", {3},
     set()),
    (rules.retried_410, f"{A}; .1 c1 < 1 410 Unregistered; .11 c1 < rst; .5 c2 > 3 push b1 device=a; .6 c2 < 3 410 X", set(), {3}),
    (rules.retried_410, f"{A}; .1 c1 < 1 410 Unregistered; .11 c1 > 3 push a1; .2 c1 < 3 410 Unregistered", {3}, set()),
    (rules.retried_410, f"{A}; .02 c1 < 1 410 Unregistered; .03 c1 > 3 push b1 device=a; .04 c1 < 3 410 X", set(), set()),
    (rules.retried_410, f"{A}; .02 c1 < 1 410 Unregistered; .03 c1 > 3 push b1 device=a; .2 c1 < 3 410 X", set(), {3}),
    (rules.retried_410, f"{A}; .1 c1 < 1 410 Unregistered; .5 c1 > 3 push b1 device=a; .6 c1 < 3 410 X", {3}, set()),
    (rules.retried_410, f"{A}; .1 c1 < 1 410 Unregistered; .5 c1 > 3 push b1; .6 c1 < 3 200", set(), set()),
    (rules.retried_410,
     f"{A}; .1 c1 < 1 410 X; .5 c1 > 3 push b1 device=a; .6 c1 < 3 200; 1 c1 > 5 push c1 device=a; 1.1 c1 < 5 200", {3}, set()),
    # The first response may have been sent long before the relay received it.
    (rules.stale_tokens, f"{A}; .11 c2 > 3 push b1; .12 c1 < 1 403 ExpiredProviderToken; .13 c2 < 3 403 X", set(), {3}),
    (rules.stale_tokens, f"{A}; .1 c1 < 1 403 ExpiredProviderToken; .5 c1 > 3 push b1; .6 c1 < 3 403 X", {3}, set()),
    (rules.stale_tokens, f"{A}; .1 c1 < 1 403 ExpiredProviderToken; .5 c1 > 3 push b1 token=u; .6 c1 < 3 200", set(), set()),
])
def test_findings(function, text, must, may):
    _, attempts = known(text)
    expected = function(attempts)
    assert {stream for _, stream in expected.must} == must
    assert {stream for _, stream in expected.may} == may


def test_streams_after_goaway():
    _, attempts = read("0 c1 < goaway 1; .1 c1 > 3 push a1; .5 c1 > 5 push b1; 1 c1 > 7 push c1")
    expected = rules.streams_after_goaway(attempts)
    assert (expected.must, expected.may) == ({(1, 7)}, {(1, 5)})


@pytest.mark.parametrize("text, may", [
    ("0 c1 < settings 1; .1 c1 > settings ack; 1 c1 > 1 push a1; 1.1 c1 > 3 push b1; 2 c1 > fin", {3}),
    ("0 c1 < settings 1; 1 c1 > 1 push a1; 1.1 c1 > 3 push b1; 1.2 c1 > settings ack; 2 c1 > fin", set()),
    ("0 c1 < settings 1; .1 c1 > settings ack; 1 c1 > 1 push a1; 1.1 c1 < 1 200; 1.2 c1 > 3 push b1; 2 c1 > fin", set()),
])
def test_excess_streams(text, may):
    _, attempts = read(text)
    expected = rules.excess_streams(attempts)
    assert (expected.must, {stream for _, stream in expected.may}) == (set(), may)


@pytest.mark.parametrize("text, may, least", [
    (f"{A}; .1 c1 < 1 200; .2 c1 > 3 push b1; .3 c1 < 3 200", set(), 0),
    (f"{A}; .1 c1 < 1 200; .2 c1 > 3 push b1 token=u; .3 c1 < 3 200", {1, 3}, 1),
    (f"{A}; .1 c1 < 1 403 ExpiredProviderToken; .2 c1 > 3 push b1 token=u; .3 c1 < 3 200", {1, 3}, 0),
])
def test_token_changes(text, may, least):
    _, attempts = known(text)
    expected = rules.token_changes(attempts)
    assert (expected.must, {stream for _, stream in expected.may}, expected.least) == (set(), may, least)


def one_push_each(count, end):
    """Returns connections with one push each, one second apart."""
    return ";".join(f"{n} c{n} > 1 push a{n}; {n}.1 c{n} < 1 200; {n}.2 c{n} {end}" for n in range(1, count + 1))


@pytest.mark.parametrize("text, must, least, most", [
    (one_push_each(4, "> fin"), set(), 0, 0),
    (one_push_each(6, "> fin"), {5, 6}, 2, 2),
    (one_push_each(6, "< fin"), set(), 0, 0),
])
def test_churn(text, must, least, most):
    connections, attempts = read(text)
    expected = rules.churn(connections, attempts)
    assert ({number for number, _ in expected.must}, expected.may) == (must, set())
    assert (expected.least, expected.most) == (least, most)


def test_the_order_of_connections_that_open_together_is_not_certain():
    text = ";".join(f"0 c{n} > 1 push a{n}; .1 c{n} < 1 200; 1 c{n} > fin" for n in range(6))
    connections, attempts = read(text)
    expected = rules.churn(connections, attempts)
    assert (expected.must, len(expected.may), expected.least, expected.most) == (set(), 6, 2, 2)
