"""A provider that follows Apple's documentation and the HTTP/2 standard: it must deliver under every fault profile."""

import asyncio
import dataclasses
import random
import ssl
import time
import uuid

from support.careful_line import Line, Lost, Unprocessed

FIRST_PAUSE = 0.02  # seconds; a real provider starts with seconds, and with 15 minutes for 5xx
LONGEST_PAUSE = 1
CONNECT_DEADLINE = 0.5  # doubled after each failed attempt, so that a slow machine can connect
LONGEST_CONNECT_DEADLINE = 8
ATTEMPT_LIMIT = 40
FRESH = 10  # seconds; a provider token that is rejected as expired at a lower age shows a wrong clock


class ConnectionSlot:
    """A slot for one line at a time, which reconnects independently of the others after its own pause."""

    def __init__(self, provider):
        self._provider = provider
        self._line = None
        self._opening = asyncio.Lock()
        self._tries = 0  # since the last successful push

    async def line(self):
        """Returns a usable line, unless the provider has halted."""
        async with self._opening:
            while not self._provider.halted and (self._line is None or not self._line.usable):
                if self._tries > 0:
                    await self._provider.pause(self._tries - 1, self._provider.reconnect_pauses)
                await self._connect()
                self._tries += 1
            return self._line

    async def _connect(self):
        deadline = min(CONNECT_DEADLINE * 2 ** self._tries, LONGEST_CONNECT_DEADLINE)
        try:
            self._line = await Line.open(self._provider.server, deadline)
            self._provider.connections_opened += 1
        except ssl.SSLCertVerificationError as error:
            self._provider.halt(f"the server's certificate is invalid: {error.verify_message}")
        except (OSError, asyncio.TimeoutError):
            self._line = None

    def succeeded(self):
        """Resets the pauses after a successful push."""
        self._tries = 1

    def close(self):
        if self._line is not None:
            self._line.close()


@dataclasses.dataclass
class CarefulProvider:
    """Delivers pushes and records the result of each.

    `deadline` is the time limit per request in seconds, `connections` the number of concurrent connections, `width`
    the most requests in flight, `clock` the clock that dates provider tokens, `registered` the time at which the
    app registered each device token, in milliseconds since 1970.
    """

    server: object
    deadline: float = 10
    connections: int = 1
    width: int = 10
    clock: object = time.time
    registered: dict = dataclasses.field(default_factory=dict)

    def __post_init__(self):
        self.delivered = []  # the numbers of the pushes answered with 200
        self.failed = {}  # number of the push: the response
        self.waiting = []  # pushes retained until an alarm has been resolved
        self.dropped = set()  # device tokens
        self.alarms = []  # for an operator to read
        self.halted = False
        self.pauses = {}  # number of the push: the pauses before its retries
        self.reconnect_pauses = []
        self.connections_opened = 0
        self.unanswered = 0  # how many attempts ended without a response
        self.shutdowns = 0  # how many pushes were answered with 503 Shutdown
        self.limit = self.width  # how many requests may be in flight now
        self.narrowest = self.width
        self.tokens = 0  # how many provider tokens were made
        self._token = None
        self._token_made = None  # when, by `clock`
        self._random = random.Random(1)

    # Public interface

    def run(self, pushes):
        """Runs one campaign: opens connections, delivers the pushes, closes the connections."""

        async def campaign():
            async with self:
                await self.deliver(pushes)

        asyncio.run(campaign())

    async def __aenter__(self):
        self._berths = [ConnectionSlot(self) for _ in range(self.connections)]
        self._lanes = {}
        self._in_flight = 0
        self._room = asyncio.Event()
        return self

    async def __aexit__(self, *_):
        for slot in self._berths:
            slot.close()

    async def deliver(self, pushes):
        """Delivers the pushes; returns when each has its final result."""
        await asyncio.gather(*(self._deliver(push, index) for index, push in enumerate(pushes)))

    def resume(self):
        """Continues after the cause of an alarm is resolved; returns the retained pushes."""
        self.halted = False
        kept, self.waiting = self.waiting, []
        return kept

    # Used by the berths

    def halt(self, alarm):
        """Stops sending until an operator has resolved the alarm."""
        if not self.halted:
            self.alarms.append(alarm)
        self.halted = True

    async def pause(self, attempt, account):
        """Sleeps twice as long with each attempt, with random jitter, and appends the pause to `account`."""
        length = min(FIRST_PAUSE * 2 ** attempt, LONGEST_PAUSE) * self._random.uniform(1, 1.5)
        account.append(length)
        await asyncio.sleep(length)

    # One push

    async def _deliver(self, push, index):
        push = push if push.apns_id else dataclasses.replace(push, apns_id=str(uuid.uuid4()))
        # Pushes to one device are serialized: this preserves their order, and a 429 delays only that device.
        async with self._lanes.setdefault(push.device, asyncio.Lock()):
            pauses = []
            for attempt in range(ATTEMPT_LIMIT):
                if push.device in self.dropped:
                    return
                done = await self._attempt(push, self._berths[(index + attempt) % len(self._berths)])
                if self.halted:
                    return self.waiting.append(push) if not done else None
                if done:
                    return
                if done is None:
                    self.pauses[push.payload["n"]] = pauses
                    await self.pause(len(pauses), pauses)
            self.failed[push.payload["n"]] = "too many attempts"

    async def _attempt(self, push, slot):
        """Returns True if the push has its final result, False to retry at once, and None to retry after a pause."""
        while self._in_flight >= self.limit:
            self._room.clear()
            await self._room.wait()
        self._in_flight += 1
        try:
            line = await slot.line()
            if self.halted:
                return False
            token = self._token = self._token or self._new_token()
            response = await line.push(self._headers(push, token), push.body.encode(), self.deadline)
        except Unprocessed:
            return False
        except Lost:
            # Reduce concurrency: a slow server becomes slower with more requests waiting.
            self.unanswered += 1
            self.limit = max(1, self.limit // 2)
            self.narrowest = min(self.narrowest, self.limit)
            return None
        finally:
            self._in_flight -= 1
            self._room.set()
        return self._evaluate(push, response, line, slot, token)

    def _evaluate(self, push, response, line, slot, token):
        facts = response.facts
        reason, kind = facts.get("reason"), (response.status, facts.get("reason"))
        if response.status == 200:
            slot.succeeded()
            self.limit = min(self.width, self.limit + 1)
            self.delivered.append(push.payload["n"])
            return True
        if kind == (403, "ExpiredProviderToken"):
            if self._token == token and self.clock() - self._token_made < FRESH:
                self.halt("403 ExpiredProviderToken for a new provider token: is this machine's clock right?")
                return False
            # The first push to receive this response makes the new token; the others use it.
            if self._token == token:
                self._token = self._new_token()
            line.retire()
            return False
        if response.status == 429 or response.status >= 500:
            if reason == "Shutdown":
                self.shutdowns += 1
                line.retire()
            return None
        if response.status == 403:
            self.halt(f"403 {reason}: the provider's credential is not good here")
            return False
        self.failed[push.payload["n"]] = f"{response.status} {reason}"
        if response.status == 410:
            if self.registered.get(push.device, 0) <= facts.get("timestamp", 0):
                self.dropped.add(push.device)
        elif kind in ((400, "BadDeviceToken"), (400, "DeviceTokenNotForTopic")):
            self.dropped.add(push.device)
            self.alarms.append(f"400 {reason}: is this the environment that device token {push.device} belongs to?")
        else:
            self.alarms.append(f"{response.status} {reason}: unknown, not sent again")
        return True

    def _new_token(self):
        self.tokens += 1
        self._token_made = self.clock()
        return self.server.token(issued_at=int(self._token_made))

    def _headers(self, push, token):
        return [
            (name, f"bearer {token}" if name == "authorization" else value)
            for name, value in frame_headers(self.server, push)
        ]


def frame_headers(server, push):
    """Returns a push's header list."""
    return [
        (":method", "POST"), (":scheme", "https"), (":path", f"/3/device/{push.device}"),
        (":authority", server.authority), *push.headers(server).items(),
    ]
