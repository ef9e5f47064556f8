"""Types of the JSON objects that the server returns. Every member has the name that the admin API documents."""

from __future__ import annotations

from typing import Any, Optional, TypedDict


class Connection(TypedDict):
    """The connection on which a push arrived."""

    id: str
    stream: int
    client: str
    sni: Optional[str]
    tls: str


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


class Notification(TypedDict):
    """The values of the `apns-` header fields, with APNs' defaults."""

    id: Optional[str]
    id_origin: Optional[str]
    topic: Optional[str]
    push_type: Optional[str]
    priority: Optional[int]
    expiration: Optional[str]
    collapse_id: Optional[str]


class Fault(TypedDict):
    """The rule of a fault profile that affected a push or ended its connection."""

    profile: Optional[str]
    rule: str
    action: str
    draw: Optional[float]
    p: Optional[float]
    ordinal: Optional[int]


class Served(TypedDict):
    """The response that was sent."""

    status: Optional[int]
    reason: Optional[str]
    reset: Optional[str]
    goaway: Optional[dict[str, Any]]
    closed: Optional[str]
    latency_ms: Optional[float]


class Push(TypedDict):
    """The record of one push attempt."""

    seq: int
    run: Optional[str]
    test: Optional[str]
    accepted: bool
    outcome: str
    listener: int
    received_at: str
    finished_at: Optional[str]
    push_key: str
    attempt: int
    connection: Connection
    request: Request
    apns: Notification
    auth: dict[str, Any]
    verdict: Optional[dict[str, Any]]
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
