"""A provider that does what Apple and the HTTP/2 standard ask for: it must get through every fault profile."""

import asyncio
import dataclasses
import random
import ssl
import time
import uuid

from support.careful_line import Line, Lost, Unprocessed

FIRST_PAUSE = 0.02  # seconds; a real provider begins with seconds, and with 15 minutes for 5xx
LONGEST_PAUSE = 1
CONNECT_DEADLINE = 0.5  # doubled with each attempt in vain, so that a slow machine gets through
LONGEST_CONNECT_DEADLINE = 8
MOST_ATTEMPTS = 40


class Berth:
    """A place for one line at a time. Each berth reconnects by itself, after a pause that is its own."""

    def __init__(self, provider):
        self._provider = provider
        self._line = None
        self._opening = asyncio.Lock()
        self._tries = 0  # since a push came through

    async def line(self):
        """A usable line; nothing once the provider has stopped."""
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
            self._provider.halt(f"the server's certificate is not good: {error.verify_message}")
        except (OSError, asyncio.TimeoutError):
            self._line = None

    def proved(self):
        """A push came through: the pauses begin anew."""
        self._tries = 1

    def close(self):
        if self._line is not None:
            self._line.close()


@dataclasses.dataclass
class CarefulProvider:
    """Delivers pushes and keeps account of what became of them.

    `deadline` for each request, `connections` at once, `width` requests in flight at most, `clock` by which provider
    tokens are dated, `registered` when the app registered a device token, in milliseconds since 1970."""

    server: object
    deadline: float = 10
    connections: int = 1
    width: int = 10
    clock: object = time.time
    registered: dict = dataclasses.field(default_factory=dict)

    def __post_init__(self):
        self.delivered = []  # the numbers of the pushes that were answered by 200
        self.failed = {}  # number of the push: what was answered
        self.waiting = []  # pushes kept for when an alarm has been seen to
        self.dropped = set()  # device tokens
        self.alarms = []  # for a person to read
        self.halted = False
        self.pauses = {}  # number of the push: the pauses before it was sent again
        self.reconnect_pauses = []
        self.connections_opened = 0
        self.unanswered = 0  # how many attempts ended without an answer
        self.shutdowns = 0  # how many pushes were answered by 503 Shutdown
        self.limit = self.width  # how many requests may be in flight now
        self.narrowest = self.width
        self.tokens = 0  # how many provider tokens were made
        self._token = None
        self._random = random.Random(1)

    # What a caller does

    def run(self, pushes):
        """One campaign: opens connections, delivers, closes them."""

        async def campaign():
            async with self:
                await self.deliver(pushes)

        asyncio.run(campaign())

    async def __aenter__(self):
        self._berths = [Berth(self) for _ in range(self.connections)]
        self._lanes = {}
        self._in_flight = 0
        self._room = asyncio.Event()
        return self

    async def __aexit__(self, *_):
        for berth in self._berths:
            berth.close()

    async def deliver(self, pushes):
        """Returns when the story of every push has ended."""
        await asyncio.gather(*(self._deliver(push, index) for index, push in enumerate(pushes)))

    def resume(self):
        """The cause of an alarm is mended; the pushes that were kept back."""
        self.halted = False
        kept, self.waiting = self.waiting, []
        return kept

    # What its parts need

    def halt(self, alarm):
        """Nothing goes out until somebody has read the alarm."""
        if not self.halted:
            self.alarms.append(alarm)
        self.halted = True

    async def pause(self, attempt, account):
        """Twice as long each time, and not the same for everybody."""
        length = min(FIRST_PAUSE * 2 ** attempt, LONGEST_PAUSE) * self._random.uniform(1, 1.5)
        account.append(length)
        await asyncio.sleep(length)

    # One push

    async def _deliver(self, push, index):
        push = push if push.apns_id else dataclasses.replace(push, apns_id=str(uuid.uuid4()))
        # One after the other for each device: it keeps their order, and only that device waits after a 429.
        async with self._lanes.setdefault(push.device, asyncio.Lock()):
            pauses = []
            for attempt in range(MOST_ATTEMPTS):
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

    async def _attempt(self, push, berth):
        """Whether its story has ended; None asks for a pause first."""
        while self._in_flight >= self.limit:
            self._room.clear()
            await self._room.wait()
        self._in_flight += 1
        try:
            line = await berth.line()
            if self.halted:
                return False
            token = self._token = self._token or self._new_token()
            answer = await line.push(self._headers(push, token), push.body.encode(), self.deadline)
        except Unprocessed:
            return False
        except Lost:
            # Fewer at once: whoever is slow gets slower when more wait for it.
            self.unanswered += 1
            self.limit = max(1, self.limit // 2)
            self.narrowest = min(self.narrowest, self.limit)
            return None
        finally:
            self._in_flight -= 1
            self._room.set()
        return self._judge(push, answer, line, berth, token)

    def _judge(self, push, answer, line, berth, token):
        facts = answer.facts
        reason, kind = facts.get("reason"), (answer.status, facts.get("reason"))
        if answer.status == 200:
            berth.proved()
            self.limit = min(self.width, self.limit + 1)
            self.delivered.append(push.payload["n"])
            return True
        if kind == (403, "ExpiredProviderToken"):
            # The first push that hears of it makes the new token; the others find it made.
            if self._token == token:
                self._token = self._new_token()
            line.retire()
            return False
        if answer.status == 429 or answer.status >= 500:
            if reason == "Shutdown":
                self.shutdowns += 1
                line.retire()
            return None
        if answer.status == 403:
            self.halt(f"403 {reason}: the provider's credential is not good here")
            return False
        self.failed[push.payload["n"]] = f"{answer.status} {reason}"
        if answer.status == 410:
            if self.registered.get(push.device, 0) <= facts.get("timestamp", 0):
                self.dropped.add(push.device)
        elif kind in ((400, "BadDeviceToken"), (400, "DeviceTokenNotForTopic")):
            self.dropped.add(push.device)
            self.alarms.append(f"400 {reason}: is this the environment that device token {push.device} belongs to?")
        else:
            self.alarms.append(f"{answer.status} {reason}: unknown, not sent again")
        return True

    def _new_token(self):
        self.tokens += 1
        return self.server.token(issued_at=int(self.clock()))

    def _headers(self, push, token):
        return [
            (name, f"bearer {token}" if name == "authorization" else value)
            for name, value in frame_headers(self.server, push)
        ]


def frame_headers(server, push):
    """The header list of a push."""
    return [
        (":method", "POST"), (":scheme", "https"), (":path", f"/3/device/{push.device}"),
        (":authority", server.authority), *push.headers(server).items(),
    ]
