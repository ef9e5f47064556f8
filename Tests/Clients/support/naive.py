"""Providers as they are often written. Each has one bug, which its docstring names; `careful.py` has none of them."""

import enum
import json
import time

import httpx
from hyperframe.frame import SettingsFrame

from support.careful import frame_headers
from support.wire import Closed, client_context, connect


class Naive:
    """Gives up: whatever is not 200 is a failure, and nothing is sent again.

    `clock` is what provider tokens are dated by; `patience`, in seconds, is for anything httpx does, and None waits for
    ever."""

    tries = 1  # how often a push is sent
    verified = True

    def __init__(self, server, *, clock=time.time, patience=10):
        self.server = server
        self.clock = clock
        self.delivered = []  # the numbers of the pushes that were answered by 200
        self.failed = []
        self.dropped = set()  # device tokens it will not send to any more
        self.tokens = 0  # how many provider tokens it made
        self._token = None
        self.client = httpx.Client(
            http2=True, verify=client_context(server.ca) if self.verified else False, base_url=server.url,
            timeout=patience, trust_env=False)

    def run(self, pushes):
        for push in pushes:
            if push.device not in self.dropped:
                (self.delivered if self.deliver(push) else self.failed).append(push.payload["n"])

    def deliver(self, push):
        """Whether it was answered by 200 in the end."""
        for _ in range(self.tries):
            answer = self.send(push)
            if answer is not None and answer.status_code == 200:
                return True
            if answer is not None:
                self.meet(answer, push)
        return False

    def send(self, push):
        """The answer; None when there is none."""
        headers = {**push.headers(self.server), "authorization": f"bearer {self.token()}"}
        return self.client.post(f"/3/device/{push.device}", headers=headers, content=push.body)

    def meet(self, answer, push):
        """What an answer other than 200 changes."""

    def token(self):
        if self._token is None:
            self.tokens += 1
            self._token = self.server.token(issued_at=int(self.clock()))
        return self._token


class Hasty(Naive):
    """Sends a push three times more, at once, whatever came back. Without an `apns-id` each is a new notification."""

    tries = 4

    def send(self, push):
        try:
            return super().send(push)
        except httpx.HTTPError:
            return None


class Careless(Hasty):
    """Sends once, and takes whatever happens for a failure."""

    tries = 1


class Minter(Hasty):
    """Takes every trouble for one with its provider token and makes another."""

    def meet(self, answer, push):
        self._token = None

    def token(self):
        if self._token is None:
            # Two tokens of one second are the same to APNs; these are a second apart.
            self._token = self.server.token(issued_at=int(self.clock()) - self.tokens)
            self.tokens += 1
        return self._token


class Spender(Minter):
    """Makes a provider token for each request."""

    tries = 1

    def send(self, push):
        self._token = None
        return super().send(push)


class Purger(Naive):
    """Takes one bad device token for all of them."""

    def run(self, pushes):
        pushes = list(pushes)
        super().run(pushes)
        if self.failed:
            self.dropped |= {push.device for push in pushes}


class Forgetful(Naive):
    """Drops a device token on 410 without a look at the timestamp."""

    def meet(self, answer, push):
        if answer.status_code == 410:
            self.dropped.add(push.device)


class Trusting(Naive):
    """Takes any certificate."""

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
    """Knows the reasons of a list, and falls over any other."""

    def meet(self, answer, push):
        KnownReason(answer.json()["reason"])


class Flooder:
    """Listens neither to SETTINGS nor to GOAWAY: after its first answer it has as many streams open as it likes."""

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
                self._await_leave()
                while left or self._open:
                    while left and len(self._open) < self.width:
                        self._begin(left.pop(0))
                    self._end_one()
            except Closed:
                pass  # whatever was not answered is lost

    def _await_leave(self):
        """What has to happen before it goes on after its first answer."""

    def _begin(self, push):
        self._open[self._wire.open(frame_headers(self.server, push), push.body.encode())] = push

    def _end_one(self):
        while not (finished := [stream for stream in self._open if self._wire.answers[stream].finished]):
            self._wire.receive()
        for stream in finished:
            push = self._open.pop(stream)
            if self._wire.answers[stream].status == 200:
                self.delivered.append(push.payload["n"])


class Hopeful(Flooder):
    """After its first answer it waits for SETTINGS that allow it more than one stream."""

    def _await_leave(self):
        while max(frame.settings[SettingsFrame.MAX_CONCURRENT_STREAMS] for frame in self._wire.own_settings()) < 2:
            self._wire.receive()


class Literal:
    """Reads answers as aioapns and rpush do: each DATA frame is a whole JSON text, each reason one of the list, and the
    `apns-id` says byte for byte whose answer it is."""

    def __init__(self, server):
        self.server = server
        self.surprises = {}  # number of the push: the error its answer caused

    def run(self, pushes):
        with connect(self.server) as wire:
            for push in pushes:
                answer = wire.push(frame_headers(self.server, push), push.body.encode())
                try:
                    self._read(answer, {push.apns_id: push})
                except (KeyError, ValueError) as error:
                    self.surprises[push.payload["n"]] = error

    def _read(self, answer, waiting):
        waiting.pop(answer.header("apns-id"))
        if answer.status != 200:
            for chunk in answer.data or [b""]:
                KnownReason(json.loads(chunk)["reason"])
