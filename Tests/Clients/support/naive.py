"""Providers with typical bugs. Each has one bug, described in its docstring; `careful.py` has none of them."""

import enum
import json
import time

import httpx
from hyperframe.frame import SettingsFrame

from support.careful import frame_headers
from support.wire import Closed, client_context, connect


class Naive:
    """Gives up: every response other than 200 is a failure, and nothing is sent again.

    `clock` dates the provider tokens; `timeout` is httpx's timeout in seconds, and None waits indefinitely.
    """

    tries = 1  # how often a push is sent
    verified = True

    def __init__(self, server, *, clock=time.time, timeout=10):
        self.server = server
        self.clock = clock
        self.delivered = []  # the numbers of the pushes answered with 200
        self.failed = []
        self.dropped = set()  # device tokens it no longer sends to
        self.tokens = 0  # how many provider tokens it made
        self._token = None
        self.client = httpx.Client(
            http2=True, verify=client_context(server.ca) if self.verified else False, base_url=server.url,
            timeout=timeout, trust_env=False)

    def run(self, pushes):
        for push in pushes:
            if push.device not in self.dropped:
                (self.delivered if self.deliver(push) else self.failed).append(push.payload["n"])

    def deliver(self, push):
        """Sends a push and returns whether it was finally answered with 200."""
        for _ in range(self.tries):
            response = self.send(push)
            if response is not None and response.status_code == 200:
                return True
            if response is not None:
                self.react(response, push)
        return False

    def send(self, push):
        """Returns the response, or None if there was none."""
        headers = {**push.headers(self.server), "authorization": f"bearer {self.token()}"}
        return self.client.post(f"/3/device/{push.device}", headers=headers, content=push.body)

    def react(self, response, push):
        """Reacts to a response other than 200."""

    def token(self):
        if self._token is None:
            self.tokens += 1
            self._token = self.server.token(issued_at=int(self.clock()))
        return self._token


class Hasty(Naive):
    """Sends a failed push up to three more times without a pause, whatever the response was. Without an `apns-id`
    each is a new notification.
    """

    tries = 4

    def send(self, push):
        try:
            return super().send(push)
        except httpx.HTTPError:
            return None


class Careless(Hasty):
    """Sends once and treats every error as a failure."""

    tries = 1


class Minter(Hasty):
    """Attributes every error to its provider token and makes another."""

    def react(self, response, push):
        self._token = None

    def token(self):
        if self._token is None:
            # Two tokens of the same second are equal for APNs, so these are ten seconds apart.
            self._token = self.server.token(issued_at=int(self.clock()) - 10 * self.tokens)
            self.tokens += 1
        return self._token


class Spender(Minter):
    """Makes a provider token for each request."""

    tries = 1

    def send(self, push):
        self._token = None
        return super().send(push)


class Purger(Naive):
    """Drops all device tokens because of one bad token."""

    def run(self, pushes):
        pushes = list(pushes)
        super().run(pushes)
        if self.failed:
            self.dropped |= {push.device for push in pushes}


class Forgetful(Naive):
    """Drops a device token on 410 without comparing the timestamp."""

    def react(self, response, push):
        if response.status_code == 410:
            self.dropped.add(push.device)


class Trusting(Naive):
    """Accepts any certificate."""

    verified = False


class KnownReason(enum.Enum):
    """The reasons of Apple's archived documentation, as many libraries list them."""

    BAD_DEVICE_TOKEN = "BadDeviceToken"
    BAD_TOPIC = "BadTopic"
    EXPIRED_PROVIDER_TOKEN = "ExpiredProviderToken"
    FORBIDDEN = "Forbidden"
    INTERNAL_SERVER_ERROR = "InternalServerError"
    INVALID_PROVIDER_TOKEN = "InvalidProviderToken"
    SERVICE_UNAVAILABLE = "ServiceUnavailable"
    SHUTDOWN = "Shutdown"
    TOO_MANY_REQUESTS = "TooManyRequests"
    UNREGISTERED = "Unregistered"


class Listed(Naive):
    """Raises an error for any reason that is not in its list."""

    def react(self, response, push):
        KnownReason(response.json()["reason"])


class Flooder:
    """Ignores SETTINGS and GOAWAY: after its first response it opens up to `width` streams."""

    def __init__(self, server, width=1000):
        self.server = server
        self.width = width
        self.delivered = []

    def run(self, pushes):
        left = list(pushes)
        with connect(self.server) as wire:
            self._wire, self._open = wire, {}
            try:
                self._begin(left.pop(0))
                self._end_one()
                self._await_stream_limit()
                while left or self._open:
                    while left and len(self._open) < self.width:
                        self._begin(left.pop(0))
                    self._end_one()
            except Closed:
                pass  # pushes without a response are lost

    def _await_stream_limit(self):
        """Called after the first response; subclasses override it to wait."""

    def _begin(self, push):
        self._open[self._wire.open(frame_headers(self.server, push), push.body.encode())] = push

    def _end_one(self):
        while not (finished := [stream for stream in self._open if self._wire.responses[stream].finished]):
            self._wire.receive()
        for stream in finished:
            push = self._open.pop(stream)
            if self._wire.responses[stream].status == 200:
                self.delivered.append(push.payload["n"])


class Hopeful(Flooder):
    """Waits after its first response for SETTINGS that allow more than one stream."""

    def _await_stream_limit(self):
        while max(frame.settings[SettingsFrame.MAX_CONCURRENT_STREAMS] for frame in self._wire.own_settings()) < 2:
            self._wire.receive()


class Literal:
    """Reads responses as aioapns and rpush do: each DATA frame is a complete JSON text, each reason is in the list,
    and the `apns-id` identifies the push byte for byte.
    """

    def __init__(self, server):
        self.server = server
        self.surprises = {}  # number of the push: the error its response caused

    def run(self, pushes):
        with connect(self.server) as wire:
            for push in pushes:
                response = wire.push(frame_headers(self.server, push), push.body.encode())
                try:
                    self._read(response, {push.apns_id: push})
                except (KeyError, ValueError) as error:
                    self.surprises[push.payload["n"]] = error

    def _read(self, response, waiting):
        waiting.pop(response.header("apns-id"))
        if response.status != 200:
            for chunk in response.data or [b""]:
                KnownReason(json.loads(chunk)["reason"])
