"""Types of the JSON objects that the server returns. Every member has the name that the admin API documents."""

from __future__ import annotations

from typing import Any, Optional, TypedDict, Union


class Connection(TypedDict):
    """The connection on which a push arrived."""

    id: str
    stream: int
    client: str
    sni: Optional[str]
    tls: Optional[str]
    #: `h2` or `http/1.1`.
    http: str


class Certificate(TypedDict, total=False):
    """The certificate of a provider."""

    subject_uid: Optional[str]
    common_name: Optional[str]
    fingerprint: str
    topics: list[str]


class WithCertificate(TypedDict, total=False):
    #: Absent if the provider presented none.
    certificate: Certificate


class Credentials(WithCertificate):
    """How the provider authenticated itself."""

    #: `token`, `certificate` or `none`.
    kind: str
    team_id: Optional[str]
    key_id: Optional[str]
    issued_at: Optional[str]
    age_ms: Optional[int]
    signature: Optional[str]


class WithDetail(TypedDict, total=False):
    #: Why the check failed.
    detail: str


class Check(WithDetail):
    """A check of APNs' rules."""

    check: str
    ok: bool


class Verdict(TypedDict):
    """The response that APNs would give."""

    status: int
    reason: Optional[str]
    checks: list[Check]


class GoAway(TypedDict):
    """A GOAWAY frame that was sent."""

    code: str
    last_stream: int
    debug: str


class Size(TypedDict):
    """The size of a request's body and its maximum, in bytes."""

    bytes: int
    limit: int


class Request(TypedDict):
    """The request as the provider sent it."""

    method: Optional[str]
    path: Optional[str]
    device_token: Optional[str]
    headers: list[list[str]]
    payload: Any
    payload_error: Optional[str]
    size: Size
    complete: bool


class Notification(TypedDict):
    """The values of the `apns-` header fields, with APNs' defaults."""

    id: Optional[str]
    id_origin: Optional[str]
    topic: Optional[str]
    push_type: Optional[str]
    priority: Optional[int]
    expiration: Optional[str]
    collapse_id: Optional[str]


class OtherRule(TypedDict):
    """A rule that contributed to a fault."""

    rule: str
    action: str


class WithOtherRules(TypedDict, total=False):
    #: Absent if one rule made the fault.
    also: list[OtherRule]


class Fault(WithOtherRules):
    """The rule of a fault profile that affected a push or ended its connection."""

    profile: Optional[str]
    rule: str
    action: str
    draw: Optional[float]
    p: Optional[float]
    ordinal: Optional[int]
    #: The `seq` of the push for which the rule fired, if it is another one.
    by: Union[int, str, None]


class Served(TypedDict):
    """The response that was sent."""

    status: Optional[int]
    reason: Optional[str]
    reset: Optional[str]
    goaway: Optional[GoAway]
    closed: Optional[str]
    latency_ms: Optional[float]


class Upstream(TypedDict):
    """What the service of `--upstream` did with the push."""

    status: Optional[int]
    reason: Optional[str]
    apns_id: Optional[str]
    #: Why there is no response.
    problem: Optional[str]
    latency_ms: Optional[float]
    connection: Optional[int]
    #: Whether status or reason differ from those of the verdict.
    deviating: bool


class WithUpstream(TypedDict, total=False):
    #: Absent if the push was not forwarded.
    upstream: Upstream


class Push(WithUpstream):
    """The record of one push attempt."""

    seq: int
    run: Optional[str]
    test: Optional[str]
    accepted: bool
    #: What APNs did with the push, and how the attempt ended for the client; `outcome` follows from both.
    decision: str
    ending: str
    outcome: str
    #: How a malformed request violates HTTP/2.
    violation: Optional[str]
    #: The last state of the delivery to a registered device.
    delivery: Optional[str]
    listener: int
    #: `push`, `broadcast` or `channel`.
    kind: str
    #: `sandbox` or `production`.
    environment: str
    received_at: str
    finished_at: Optional[str]
    push_key: str
    attempt: int
    connection: Connection
    request: Request
    apns: Notification
    auth: Credentials
    verdict: Optional[Verdict]
    fault: Optional[Fault]
    served: Served
    findings: list[str]


class FindingRecord(TypedDict):
    """A push with a finding, and the pushes that prove it."""

    seq: int
    evidence: list[int]
    explanation: str


class Finding(TypedDict):
    """A mistake of the provider."""

    finding: str
    count: int
    summary: str
    advice: str
    records: list[FindingRecord]
    more: int
