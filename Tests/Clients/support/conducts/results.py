"""What a provider sends, and what its HTTP/2 client tells it."""

import dataclasses
import json


@dataclasses.dataclass
class Request:
    """One attempt. `cancel_after`: seconds after which the client resets the stream; `apart`: seconds between HEADERS and
    DATA; `own_connection`: whether it has a connection for itself, which is closed afterwards.
    """

    path: str
    headers: dict
    body: bytes
    authority: str
    cancel_after: float | None = None
    apart: float | None = None
    own_connection: bool = False

    @property
    def fields(self):
        pseudo = {":method": "POST", ":scheme": "https", ":path": self.path, ":authority": self.authority}
        return list({**pseudo, **self.headers}.items())


@dataclasses.dataclass(frozen=True)
class Manners:
    """The rules of HTTP/2 that a connection breaks."""

    ignores_settings: bool = False
    ignores_goaway: bool = False


@dataclasses.dataclass
class Reply:
    """A complete response."""

    status: int
    body: bytes = b""

    @property
    def reason(self):
        try:
            return json.loads(self.body).get("reason")
        except (ValueError, AttributeError):
            return None

    def __str__(self):
        return f"{self.status} {self.reason or ''}".strip()


class NoReply(Exception):
    """There was no complete response."""


class Refused(NoReply):
    """The push was certainly not processed."""


class Lost(NoReply):
    """The push may have been processed."""


class Unconnected(NoReply):
    """Nothing was sent."""


class Untrusted(Unconnected):
    """The server's certificate is not valid."""
