"""The rules of the verdicts about pushes and the findings, applied to what the oracle found: pure functions.

Where a time is close to a limit, or the frames do not show what happened, a result is None or in `Expected.may`.
"""

import collections
import dataclasses

from support.conducts.oracle import end_of, is_permanent, is_temporary
from support.conducts.relay import CLIENT, SERVER

NEAR = 0.06  # seconds around a limit in which both results are possible
READ_TIME = 0.1  # seconds after a response from which on a frame shows that the client has read it
HOT_TIME = 0.1  # seconds in which a retry is immediate
CROSSING_TIME = 0.5  # seconds after a GOAWAY in which a new stream may have crossed it
OVERTAKING_TIME = 1  # seconds after a response in which a request may be read that was sent before
RESEND_TIME = 60  # seconds after the end of a connection in which its pushes count as sent again
CHURN = 4  # further connections with one push


@dataclasses.dataclass
class Expected:
    """The keys that a verdict must name, and those that it may name besides."""

    must: set = dataclasses.field(default_factory=set)
    may: set = dataclasses.field(default_factory=set)
    least: int = 0  # how many there must be
    most: float = float("inf")

    def add(self, key, certainty):
        """`certainty`: True, False, or None if both are possible."""
        if certainty is not False:
            (self.must if certainty else self.may).add(key)

    def difference(self, found):
        """Returns the keys that are missing, and those that are too many."""
        return self.must - found, found - self.must - self.may


# What a client has read, and when

def has_shown_reading(attempt, later):
    """Whether the client had shown that it read the response when a later attempt arrived; None if that is not certain."""
    connection, at = attempt.connection, attempt.responded_at
    if at is None:
        return False

    def came_first(time):
        if later.connection is connection:
            return time <= later.opened_at
        return None if abs(later.opened_at - time) < connection.race else time < later.opened_at

    signs = [came_first(acknowledged) for sent, acknowledged in connection.ping_acks if sent > at]
    signs += [both(certainty(frame - at, READ_TIME, connection.lag), came_first(frame)) for frame in connection.client_frames]
    if connection.ended_by == CLIENT and connection.is_orderly:
        signs.append(came_first(connection.ended_at))
    if connection.left_at is not None and at < connection.left_at < later.opened_at:
        signs.append(None)  # the server closes after the client's GOAWAY, perhaps before the client does
    return True if True in signs else None if None in signs else False


def certainty(length, limit, lag):
    """Returns whether a time is at least `limit`; None if it is close to it."""
    return None if abs(length - limit) < NEAR + lag else length >= limit


def has_passed(former, later, limit):
    """Whether an attempt arrived at least `limit` after the response to another. The response was sent between the end of its
    request and its arrival at the relay, the later attempt was read between its start and its own end.
    """
    least = later.opened_at - former.responded_at
    most = (end_of(later) or later.opened_at + NEAR) - (former.complete_at or former.opened_at)
    lag = later.connection.lag
    return True if least >= limit + lag else False if most + lag < limit else None


def both(*certainties):
    """Returns whether all are true; None if that is not certain."""
    return False if False in certainties else None if None in certainties else True


def negated(one):
    return None if one is None else not one


# All attempts of one push

def by_push(known):
    groups = collections.defaultdict(list)
    for one in known:
        groups[one.attempt.push].append(one)
    return dict(groups)


def sequences(attempts):
    """Returns the sequences of a push's attempts, in the order in which they arrived: a new one begins after an attempt that was
    accepted and answered.
    """
    found = [[]]
    for one in sorted(attempts, key=lambda one: _arrived_at(one.attempt)):
        if found[-1] and found[-1][-1].outcome == "accepted":
            found.append([])
        found[-1].append(one)
    return found


def finals(sequence):
    """Returns how a sequence may have ended: an attempt that was not processed and has the id of one that settled the push was
    sent before that one, although it ended later.
    """
    found = {sequence[-1].outcome}
    for index, one in enumerate(sequence):
        later = sequence[index + 1:]
        is_settled = one.is_accepted or is_permanent(one.attempt) and one.ending == "response"
        if is_settled and all(
                other.decision == "not_processed" and other.attempt.apns_id == one.attempt.apns_id for other in later):
            found.add(one.outcome)
    return found


def attempt_numbers(attempts):
    """Returns {key: possible numbers}: one more than the attempts of the sequence that had ended, without those of which the
    server may not know that they are of this push. Attempts are left out that may have overlapped with others of the push.
    """
    numbers = {}
    for sequence in sequences(attempts):
        for index, one in enumerate(sequence):
            before = [_has_ended_before(other.attempt, one.attempt) for other in sequence[:index]]
            if None not in before and not any(_end_together(one.attempt, other.attempt) for other in sequence[index + 1:]):
                doubtful = len(before) if _is_nameless(one, sequence) else sum(
                    _is_nameless(other, sequence) for other in sequence[:index])
                numbers[one.attempt.key] = range(1 + len(before) - doubtful, 2 + len(before))
    return numbers


def _is_nameless(one, sequence):
    """Whether the server knows neither the body of an attempt nor another attempt with its id."""
    return one.ending in ("incomplete", "malformed") and not any(
        other is not one and other.attempt.apns_id == one.attempt.apns_id for other in sequence)


def _arrived_at(attempt):
    """Returns when the request became complete, or, if it never did, when the attempt ended."""
    return attempt.complete_at if attempt.complete_at is not None else end_of(attempt) or float("inf")


def _has_ended_before(other, attempt):
    """Returns True, or None if two attempts may have overlapped."""
    if _end_together(other, attempt):
        return None
    is_same = other.connection is attempt.connection
    ended_at, arrived_at = end_of(other), _arrived_at(attempt)
    is_ordered = ended_at is not None and ended_at <= arrived_at
    return True if is_ordered and (is_same or arrived_at - ended_at > other.connection.race) else None


def _end_together(one, other):
    """Whether two requests that never became complete end with their connections at about the same time, in any order."""
    if one.complete_at is not None or other.complete_at is not None or None not in (one.canceled_at, other.canceled_at):
        return False
    is_near = abs(_arrived_at(one) - _arrived_at(other)) <= one.connection.race
    return one.connection is other.connection or is_near


def is_lost(attempts):
    """Whether a push is unresolved: its last attempt was neither accepted nor rejected for good, and does not repeat an accepted
    one whose response was lost or whose id it has, nor, unprocessed, one that was rejected for good with its id. None if one was
    accepted and answered with another id: by the rules the push is lost, and its user has it.
    """
    last = attempts[-1]
    if last.decision == "not_processed" and any(
            is_permanent(one.attempt) and one.ending == "response" and one.attempt.apns_id == last.attempt.apns_id for one in attempts):
        return False
    accepted = [one for one in attempts if one.is_accepted]
    if last.is_accepted or is_permanent(last.attempt) and last.ending == "response":
        return False
    if accepted:
        repeats = last.attempt.apns_id in {one.attempt.apns_id for one in accepted} - {None}
        return False if accepted[-1].outcome == "response_lost" or repeats else None
    return True


def is_never_accepted(attempts):
    """Whether users miss the push although no response said that it cannot be delivered."""
    return not any(one.is_accepted for one in attempts) and not is_permanent(attempts[-1].attempt)


def accepted_ids(attempts):
    """Returns the notifications that APNs accepted for a push: more than one is shown more than once."""
    return {one.attempt.headers.get("apns-collapse-id") or one.attempt.apns_id for one in attempts if one.is_accepted}


def is_duplicate(attempts):
    """Whether a push was accepted again under another id after an acceptance that the client may not know."""
    results = [False]
    for index, first in enumerate(attempts):
        for later in attempts[index + 1:]:
            if first.is_accepted and later.is_accepted and first.attempt.apns_id != later.attempt.apns_id:
                results.append(_may_not_know(first, later.attempt))
    return True if True in results else None if None in results else False


def _may_not_know(one, later):
    connection = one.attempt.connection
    if one.outcome == "response_lost":
        return True
    if connection.is_ended_by_server or connection.ended_by == CLIENT and not connection.is_orderly:
        return negated(has_shown_reading(one.attempt, later))
    return False


def is_blind_resend(attempts):
    """Whether a push was sent again although its provider had read that it was accepted."""
    results = [False]
    for index, first in enumerate(attempts):
        for later in attempts[index + 1:]:
            if not first.is_accepted or first.ending != "response":
                continue
            if not first.attempt.is_answered:
                results.append(None)  # the response was written and did not reach the relay
            elif later.attempt.opened_at > first.attempt.responded_at:
                shown = has_shown_reading(first.attempt, later.attempt)
                results.append(both(shown, _is_resent(first.attempt, later.attempt), _is_sent_after(first, later)))
    return True if True in results else None if None in results else False


def _is_sent_after(first, later):
    """Whether an attempt was sent after the response to another. None if it was not processed and may have been read soon after
    the response: the server takes it for one that was sent before.
    """
    since = later.attempt.opened_at - first.attempt.responded_at
    is_late = later.attempt.complete_at is not None and certainty(since, OVERTAKING_TIME, later.attempt.connection.lag)
    return True if later.decision != "not_processed" or is_late else None


def _is_resent(first, later):
    connection = first.connection
    if first.apns_id == later.apns_id:
        return True
    if not connection.is_ended_by_server:
        return False
    since = later.opened_at - connection.ended_at
    return None if abs(since) < connection.race else 0 < since < RESEND_TIME


# Findings about single attempts

def retried_permanent(attempts):
    """Returns the attempts that repeat a push after a permanent response whose cause has not changed."""

    def repeats(first, second):
        is_corrected = first.status == 403 and first.token != second.token
        return (is_permanent(first) or first.reason == "ExpiredProviderToken") and first.status != 410 and not is_corrected

    return _after_responses(attempts, repeats)


def hot_retries(attempts):
    """Returns the attempts less than `HOT_TIME` after a temporary response to the same push."""

    def is_hot(first, second):
        moves = first.reason in ("Shutdown", "TooManyProviderTokenUpdates") and first.connection is not second.connection
        if not is_temporary(first) or moves:
            return False
        return negated(has_passed(first, second, HOT_TIME))

    return _after_responses(attempts, is_hot)


def _after_responses(attempts, is_found):
    """Returns the attempts for which `is_found(former, later)`. If there was another attempt in between, or the later one was
    not processed, a finding is possible and not required.
    """
    expected = Expected()
    for index, later in enumerate(attempts):
        for former in attempts[:index]:
            is_next = True if former is attempts[index - 1] else None
            is_destroyed = former.ending == "response" and not former.attempt.is_answered
            found = None if is_destroyed else is_found(former.attempt, later.attempt)
            expected.add(
                later.attempt.key, both(found, is_next, _if_processed(later), _if_received(former.attempt, later.attempt)))
    return expected


def _if_received(former, later):
    """Whether the client has a response for certain. None if the server's reset of the connection may have destroyed it on its
    way: the relay has received the response, and the server cannot know that the client has.
    """
    connection = former.connection
    is_reset = connection.ended_by == SERVER and not connection.is_orderly
    if not is_reset or not former.is_answered or later.connection is connection:
        return True
    if connection.ended_at - later.opened_at > connection.race:
        return True
    has_read = [certainty(frame - former.responded_at, READ_TIME, connection.lag) for frame in connection.client_frames]
    return True if True in has_read else None


def _if_processed(one):
    """Of an attempt that APNs did not process, a finding is possible and not required."""
    return None if one.decision == "not_processed" else True


def after_refusal(known, is_refusal, subject):
    """Returns the attempts of a device token (or provider token, by `subject`) after its first refusal: the same push at
    once, others from `READ_TIME` on. Those after an accepted one are not reported.
    """
    expected, refusals = Expected(), collections.defaultdict(list)
    for one in sorted(known, key=lambda one: one.attempt.opened_at):
        attempt, earlier = one.attempt, refusals[subject(one.attempt)]
        late = [
            both(first.responded_at < attempt.opened_at if first.push == attempt.push else has_passed(first, attempt, READ_TIME),
                 _if_received(first, attempt))
            for first in earlier]
        is_late = True if True in late else None if None in late else False
        expected.add(attempt.key, both(is_late, _if_processed(one)))
        if attempt.is_answered and is_refusal(attempt):
            earlier.append(attempt)
        elif earlier and one.is_accepted and attempt.is_answered:
            earlier.clear()
    return expected


def retried_410(known):
    return after_refusal(known, lambda attempt: attempt.status == 410, lambda attempt: attempt.target)


def stale_tokens(known):
    return after_refusal(known, lambda attempt: attempt.reason == "ExpiredProviderToken", lambda attempt: attempt.token)


def streams_after_goaway(attempts):
    expected = Expected()
    for attempt in attempts:
        for at, last in attempt.connection.goaways:
            if attempt.stream > last:
                expected.add(attempt.key, certainty(attempt.opened_at - at, CROSSING_TIME, attempt.connection.lag))
    return expected


def excess_streams(attempts):
    """Returns the attempts that may exceed the limit of streams that the client had acknowledged."""
    expected = Expected()
    for attempt in attempts:
        limits = [limit for at, limit in attempt.connection.limits if at <= attempt.opened_at]
        ends = [end_of(other) or float("inf") for other in attempts
                if other.connection is attempt.connection and other.opened_at < attempt.opened_at]
        if limits and sum(end > attempt.opened_at for end in ends) >= min(limits[-2:]):
            expected.add(attempt.key, None)
    return expected


def token_changes(known):
    """Returns the attempts that may bring another provider token to their connection, and how many must: one for each connection
    with several tokens of which none was refused; after the first APNs examines no more. Five connections with one push and a token
    of their own count too.
    """
    on = collections.defaultdict(list)
    for one in known:
        on[one.attempt.connection.number].append(one)
    singles = [group[0].attempt for group in on.values() if len(group) == 1]
    expected = Expected()
    if len({attempt.token for attempt in singles}) > CHURN:
        expected.may |= {attempt.key for attempt in singles}
    for group in on.values():
        judged = {one.attempt.token for one in group if one.attempt.is_answered}
        if len({one.attempt.token for one in group}) > 1:
            expected.may |= {one.attempt.key for one in group}
        if not any(one.attempt.status == 403 for one in group):
            expected.least += len(judged) > 1
    return expected


def churn(connections, attempts):
    """Returns the attempts that are the only ones of a connection that the client closed, after four others. A run is shorter
    than the minute in which they count.
    """
    on = collections.defaultdict(list)
    for attempt in attempts:
        on[attempt.connection.number].append(attempt)
    singles = [  # (connection, attempt, whether it certainly counts)
        (connection, *on[connection.number], _is_plain(on[connection.number][0]))
        for connection in connections if len(on[connection.number]) == 1 and _is_left(connection)
    ]
    expected = Expected()
    for connection, attempt, is_plain in singles:
        sure = sum(other.opened_at < connection.opened_at - other.race and plain for other, _, plain in singles)
        possible = sum(other.opened_at < connection.opened_at + other.race for other, _, _ in singles) - 1
        if possible >= CHURN:
            expected.add(attempt.key, True if is_plain and sure >= CHURN else None)
    expected.least = max(0, sum(plain for _, _, plain in singles) - CHURN)
    expected.most = max(0, len(singles) - CHURN)
    return expected


def _is_left(connection):
    """Whether the client may have ended a connection: a GOAWAY of the client makes the server close it."""
    return connection.ended_by == CLIENT or connection.left_at is not None


def _is_plain(attempt):
    connection = attempt.connection
    return connection.ended_by == CLIENT and connection.is_orderly and not connection.goaways and attempt.is_answered
