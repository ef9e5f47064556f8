"""The text that describes a server after a failed test."""

from __future__ import annotations

from .client import Client
from .errors import APNsMockError
from .records import Push

#: The number of pushes that the text lists.
MAX_PUSHES = 50


def describe(client: Client) -> str:
    """Returns the seed, the active profile, the newest pushes and the findings; or why they cannot be read."""
    try:
        profile, total = client.request("GET", "/profile"), client.status()["inbox"]["records"]
        fields = "seq,received_at,request.device_token,apns.topic,attempt,outcome,served,fault"
        pushes = client.pushes(limit=MAX_PUSHES, order="desc", fields=fields)[::-1]
        findings = client.findings()
    except APNsMockError as error:
        return str(error)
    lines = [f"seed {profile['seed']}, profile {profile['reference']}, {_count(total, 'push', 'pushes')} in the inbox"]
    if total > len(pushes) == MAX_PUSHES:
        lines.append(f"the newest {MAX_PUSHES}:")
    lines += _table([_row(push) for push in pushes])
    lines.append("findings:" if findings else "no findings")
    for finding in findings:
        seqs = [str(record["seq"]) for record in finding["records"]]
        more = f" and {finding['more']} more" if finding["more"] else ""
        lines.append(f"  {finding['finding']} (push {', '.join(seqs)}{more}): {finding['summary']} {finding['advice']}")
    return "\n".join(lines)


def _row(push: Push) -> list[str]:
    token = push["request"]["device_token"] or "-"
    shown = token if len(token) <= 10 else f"{token[:6]}…{token[-3:]}"
    fault = push["fault"]
    return [
        str(push["seq"]), push["received_at"][11:23], shown, push["apns"]["topic"] or "-", f"attempt {push['attempt']}",
        _response(push), f"rule {fault['rule']}" if fault else ""]


def _response(push: Push) -> str:
    served = push["served"]
    if served["status"] is not None:
        return f"{served['status']} {served['reason'] or ''}".rstrip()
    if served["goaway"]:
        return f"GOAWAY {served['goaway']['code']}"
    if served["reset"]:
        return f"RST_STREAM {served['reset']}"
    return f"connection closed ({served['closed']})" if served["closed"] else push["outcome"]


def _table(rows: list[list[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows)]
    return ["  " + "  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def _count(number: int, singular: str, plural: str) -> str:
    return f"{number} {singular if number == 1 else plural}"
