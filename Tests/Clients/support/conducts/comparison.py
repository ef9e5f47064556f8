"""The server's verdicts about a run, compared with what the frames show."""

import collections
import dataclasses

from support.conducts import oracle, rules
from support.conducts.relay import CLIENT, SERVER
from support.conducts.results import Reply

EXPECTATIONS = 100  # as many as POST /verify allows
NAMED = 20  # lost pushes that are named
ABANDONED_AFTER = "61s"
ABOUT_PUSHES = ("duplicate", "blind-resend", "abandoned")  # findings that are compared by push, the others by attempt

#: What APNs did, under a profile, with a complete push that had no response for a while: a rule delays or drops all responses at
#: `response`, where APNs has decided, or at `request`. Under the other profiles a response is never late.
DECISIONS = {
    **dict.fromkeys(("brownout", "single-stream", "stream-throttle", "ack-lost"), {"accepted", "rejected"}),
    **dict.fromkeys(("half-open", "chaos-mix"), {"not_processed"}),
}


@dataclasses.dataclass
class Report:
    """The result of a run."""

    run: object
    disagreements: list  # sentences
    lost: list  # numbers of pushes
    twice: list
    attempts: int
    unseen: int  # attempts that the server cannot have read
    choices: int  # attempts of which the frames leave open what APNs did with them
    limits: list  # pushes whose verdict is right by the rules and wrong for users
    timelines: str

    @property
    def totals(self):
        return {
            "attempts": self.attempts, "not seen by the server": self.unseen, "decided only by the server": self.choices,
            "pushes lost": len(self.lost), "accepted twice": len(self.twice), "verdicts beyond the rules": len(self.limits),
            "disagreements": len(self.disagreements),
        }


def compare(server, run, provider, relay):
    """Compares the server's verdicts about a run with the provider's log and the frames of the relay; returns the report."""
    numbers = {entry.apns_id: entry.n for entry in provider.log}
    connections, attempts = oracle.read(relay.events, numbers, 2 * relay.lag)
    records = records_by_key(server, relay)
    wrong = []
    unseen = [attempt for attempt in attempts if attempt.key not in records and may_be_unseen(attempt, attempts)]
    attempts = [attempt for attempt in attempts if attempt not in unseen]
    for key in sorted(records.keys() - {attempt.key for attempt in attempts}):
        wrong.append(f"record {records[key]['seq']}: no such stream was opened")
    known = []
    for attempt in attempts:
        if record := records.get(attempt.key):
            known.append(resolve(attempt, record, run.profile, wrong))
        else:
            wrong.append(f"{name(attempt)}: no record")
    compare_provider(provider, known, wrong)
    groups = rules.by_push(known)
    compare_numbers(groups, records, wrong)
    compare_verification(server, groups, records, wrong)
    compare_findings(server, relay, connections, known, groups, wrong)
    limits = compare_users(provider, groups, records_by_key(server, relay), wrong)
    return Report(
        run, wrong, [n for n, group in groups.items() if rules.is_never_accepted(group)],
        [n for n, group in groups.items() if len(rules.accepted_ids(group)) > 1], len(known), len(unseen),
        sum(len(possible_decisions(one.attempt, one.ending, run.profile) - {"rejected"}) > 1 for one in known), limits,
        f"{timelines(relay.events, records)}\n{provider_log(provider)}")


def records_by_key(server, relay):
    """Returns the server's records by the number of the connection and of the stream."""
    return {
        (relay.ports[int(record["connection"]["client"].rpartition(":")[2])], record["connection"]["stream"]): record
        for record in server.pushes(limit=1000)
    }


def name(attempt):
    return f"push {attempt.push}, connection {attempt.connection.number}, stream {attempt.stream}"


def may_be_unseen(attempt, attempts):
    """Whether the connection ended before the server may have read this stream, without a sign that it had."""
    connection = attempt.connection
    is_cut = connection.ended_by == SERVER or connection.ended_by == CLIENT and not connection.is_orderly
    return is_cut and attempt.opened_at > connection.ended_at - connection.race and not any(
        other.connection is connection and other.stream >= attempt.stream
        and (other.status is not None or other.reset_at is not None) for other in attempts)


def possible_decisions(attempt, ending, profile):
    """Returns what the frames and the profile allow."""
    possible = oracle.decisions(attempt, ending)
    ended_at = oracle.end_of(attempt) or float("inf")
    waited = attempt.complete_at is not None and ended_at - attempt.complete_at > attempt.connection.race
    # The push on which a rule resets the connection may have been accepted.
    is_reset = attempt.connection.ended_by == SERVER and not attempt.connection.is_orderly
    return possible & DECISIONS.get(profile, possible) or possible if waited and not is_reset else possible


def resolve(attempt, record, profile, wrong):
    """Returns the attempt with the server's decision and ending, where the truth leaves a choice, and notes contradictions."""
    possible = oracle.endings(attempt)
    ending = record["ending"]
    if ending not in possible:
        wrong.append(f"{name(attempt)}: ending {ending}, but it is {' or '.join(sorted(possible))}")
        ending = min(possible)
    choice = possible_decisions(attempt, ending, profile)
    decision = record["decision"]
    if decision not in choice:
        wrong.append(f"{name(attempt)}: decision {decision}, but it is {' or '.join(sorted(choice))}")
        decision = min(choice)
    known = oracle.Known(attempt, decision, ending)
    if record["outcome"] != known.outcome:
        wrong.append(f"{name(attempt)}: outcome {record['outcome']}, but it is {known.outcome}")
    if record["accepted"] != known.is_accepted:
        wrong.append(f"{name(attempt)}: accepted {record['accepted']}, but decision {decision}")
    if attempt.is_answered and record["served"]["status"] != attempt.status:
        wrong.append(f"{name(attempt)}: served {record['served']['status']}, but {attempt.status} was sent")
    return known


def compare_provider(provider, known, wrong):
    """Compares the provider's log with the frames."""
    answered = collections.Counter(
        (one.attempt.apns_id, one.attempt.status) for one in known if one.attempt.is_answered)
    for entry in provider.log:
        status = getattr(entry.result, "status", None)
        if status is not None and answered[entry.apns_id, status] == 0:
            wrong.append(f"push {entry.n}: the provider got {entry.result}, but no frame has it")


def compare_numbers(groups, records, wrong):
    for group in groups.values():
        for key, numbers in rules.attempt_numbers(group).items():
            if records[key]["attempt"] not in numbers:
                wrong.append(
                    f"record {records[key]['seq']}: attempt {records[key]['attempt']}, but it is {' or '.join(map(str, numbers))}")


def expected_losses(groups):
    expected = rules.Expected()
    for n, group in groups.items():
        expected.add(n, rules.is_lost(group))
    return expected


def in_order(pushes):
    return sorted(pushes, key=str)


def compare_verification(server, groups, records, wrong):
    """Compares `nothing_lost`, and for each push `retries.finally`."""
    lost = expected_losses(groups)
    finals = {
        n: sorted(set().union(*(
            rules.finals(sequence) for sequence in rules.sequences(group)
            if any(one.attempt.complete_at is not None for one in sequence)
        ))) for n, group in groups.items()
    }
    document = {"nothing_lost": True, "expect": [
        {"name": f"push {n}", "match": {"payload": {"/n": n}}, "retries": {"finally": words}, "allow_none": True}
        for n, words in list(finals.items())[:EXPECTATIONS] if words]}
    response = server.request("POST", "/api/v1/verify", document)
    assert response.status in (200, 412), response.body
    report = response.json
    push_of = {records[one.attempt.key]["seq"]: n for n, group in groups.items() for one in group}
    found = report["nothing_lost"]
    named = {push_of[seq] for seq in found.get("seqs") or []}
    count = int(found["found"].split()[0]) if found["found"][0].isdigit() else 0
    missing, extra = lost.difference(named)
    is_complete = not missing if count <= NAMED else len(named) == NAMED
    if found["passed"] != (count == 0) or not len(lost.must) <= count <= len(lost.must | lost.may) or extra or not is_complete:
        wrong.append(f"nothing_lost names {count} pushes, {in_order(named)}, but {in_order(lost.must)} are lost")
    for expectation in report["expectations"]:
        for criterion in expectation["criteria"]:
            if not criterion["passed"]:
                wrong.append(f"{expectation['name']}: {criterion['criterion']} found {criterion['found']}, "
                             f"but it is {criterion['wanted']}")


def compare_findings(server, relay, connections, known, groups, wrong):
    attempts = [one.attempt for one in known]
    expected = {"duplicate": rules.Expected(), "blind-resend": rules.Expected()}
    for n, group in groups.items():
        expected["duplicate"].add(n, rules.is_duplicate(group))
        expected["blind-resend"].add(n, rules.is_blind_resend(group))
    expected["retried-410"] = rules.retried_410(known)
    expected["jwt-stale"] = rules.stale_tokens(known)
    expected["after-goaway"] = rules.streams_after_goaway(attempts)
    expected["excess-streams"] = rules.excess_streams(attempts)
    expected["jwt-churn"] = rules.token_changes(known)
    expected["connection-churn"] = rules.churn(connections, attempts)
    for kind, function in (("retried-permanent", rules.retried_permanent), ("hot-retry", rules.hot_retries)):
        parts = [function(group) for group in groups.values()]
        expected[kind] = rules.Expected(set().union(*(part.must for part in parts)), set().union(*(part.may for part in parts)))
    expected["malformed-request"] = rules.Expected({one.attempt.key for one in known if one.ending == "malformed"})
    expected["trusted-anything"] = rules.Expected()  # the relay verifies the server
    expected["abandoned"] = expected_losses(groups)
    server.api("POST", "/clock/advance", {"by": ABANDONED_AFTER})
    found = {kind: set() for kind in expected}
    records = records_by_key(server, relay)
    for one in known:
        for kind in expected.keys() & set(records.get(one.attempt.key, {"findings": []})["findings"]):
            found[kind].add(one.attempt.push if kind in ABOUT_PUSHES else one.attempt.key)
    for kind, wanted in expected.items():
        missing, extra = wanted.difference(found[kind])
        if not wanted.least <= len(found[kind]) <= wanted.most:
            wrong.append(f"{kind} occurs {len(found[kind])} times, but it must be {wanted.least} to {wanted.most} times")
        what = "push" if kind in ABOUT_PUSHES else "connection, stream"
        wrong += [f"{kind} is missing: {what} {key}" for key in in_order(missing)]
        wrong += [f"{kind} is wrong: {what} {key}" for key in in_order(extra)]


def compare_users(provider, groups, records, wrong):
    """Compares the verdicts with what users see, without the rules of each verdict. Returns the pushes whose verdict is right by
    the rules and wrong for users: they were delivered and sent again in vain, or their provider had not read a response although
    its connection went on, because it had canceled the request or its library dropped the response. The frames do not show that.
    """
    limits = []
    for n, group in groups.items():
        log = [entry for entry in provider.log if entry.n == n]
        found = set().union(*(records[one.attempt.key]["findings"] for one in group))
        if rules.is_never_accepted(group) and "abandoned" not in found:
            wrong.append(f"push {n} is lost without the finding abandoned")
        is_shown_twice = len(rules.accepted_ids(group)) > 1
        has_read = any(getattr(entry.result, "status", None) == 200 for entry in log[:-1])
        if is_shown_twice and has_read and not found & {"duplicate", "blind-resend"}:
            wrong.append(f"push {n} is shown twice without a finding")
        if "duplicate" in found and not is_shown_twice:
            wrong.append(f"push {n} has the finding duplicate and is not shown twice")
        is_hidden = is_shown_twice and not found & {"duplicate", "blind-resend"}
        is_lost_again = any(one.is_accepted for one in group) and "abandoned" in found
        if is_lost_again or not has_read and (is_hidden or "blind-resend" in found):
            limits.append(n)
    return limits


# What is printed about a run

def timelines(events, records):
    """Returns the frames of each connection, and beside each request the server's record of it."""
    lines = []
    start = events[0].at if events else 0
    for event in sorted(events, key=lambda event: event.connection):
        if event.kind in ("WINDOW_UPDATE", "PRIORITY"):
            continue
        arrow = "-->" if event.side == CLIENT else "<--"
        left = f"{event.at - start:7.3f} c{event.connection} {arrow} {event}"
        record = records.get((event.connection, event.stream)) if event.side == CLIENT and event.kind == "HEADERS" else None
        lines.append(f"{left:110} | {summary(record)}" if record else left)
    return "\n".join(lines)


def provider_log(provider):
    """Returns what the provider knows of each push."""
    results = collections.defaultdict(list)
    for entry in provider.log:
        results[entry.n].append(str(entry.result) if isinstance(entry.result, Reply) else repr(entry.result))
    return "\n".join(
        f"  push {n}: {', '.join(found)}; {provider.ends.get(n, 'not finished')}" for n, found in sorted(results.items()))


def summary(record):
    served, fault = record["served"], record["fault"]
    sent = [served["status"], served["reason"], served["reset"], served["closed"]]
    sent += [f"GOAWAY {served['goaway']['last_stream']}"] if served["goaway"] else []
    words = [f"seq {record['seq']} attempt {record['attempt']}", record.get("decision"), record.get("ending"),
             record["outcome"], "served " + (" ".join(str(word) for word in sent if word is not None) or "nothing")]
    words += [f"fault {fault['rule']}"] if fault else []
    return ", ".join(map(str, words + record["findings"]))
