"""Providers with known conduct: `CONDUCTS` says what each does wrong. All of them keep a log of their own."""

import asyncio
import collections
import dataclasses
import hashlib
import time
import uuid

from support.conducts.results import Lost, Manners, NoReply, Refused, Request, Untrusted

TOPIC = "com.example.app"
WIDTH = 8  # pushes that are sent at the same time
BATCH = 8  # pushes that are sent again together
TRIES = 8
FIRST_PAUSE, GROWTH, LONGEST_PAUSE = 0.25, 1.6, 1.2  # seconds before a retry
TOKEN_AGE = 60  # seconds; the first provider token is that old
APART = 0.05  # seconds between HEADERS and DATA
CANCEL_AFTER = 0.03  # seconds


@dataclasses.dataclass(frozen=True)
class Conduct:
    """What a provider does. The defaults are those of a correct one, which keeps its `apns-id`, pauses longer before each
    retry, and knows which responses are final.
    """

    description: str
    tries: int = TRIES
    pauses: bool = True  # before a retry
    retries_everything: bool = False  # whatever the response was
    drops_errors: bool = False
    gives_up_at_503: bool = False
    repeats_410: bool = False
    new_ids: bool = False
    resends_batches: bool = False
    new_tokens: bool = False  # for each attempt
    own_connections: bool = False
    apart: bool = False
    cancels: bool = False
    manners: Manners = Manners()
    carriers: tuple = ("hand", "httpx", "node", "go", "curl")


# A combination that is missing cannot be expressed: the libraries obey SETTINGS and GOAWAY without being asked, and curl sends
# a body at once and has no way to cancel one of several transfers.
CONDUCTS = {
    "correct": Conduct("makes no mistake"),
    "drops-errors": Conduct("drops a push after any error", drops_errors=True),
    "gives-up-at-503": Conduct("drops a push after its first 503", gives_up_at_503=True),
    "new-ids": Conduct("gives each attempt another apns-id", new_ids=True),
    "resends-blindly": Conduct("sends a whole batch again after one of its pushes got no response", resends_batches=True),
    "no-pause": Conduct("ignores retry-after: sends again at once, whatever the response", tries=4, pauses=False,
                        retries_everything=True),
    "after-goaway": Conduct("uses a connection after GOAWAY", manners=Manners(ignores_goaway=True), carriers=("hand",)),
    "ignores-settings": Conduct("opens more streams than SETTINGS allow", manners=Manners(ignores_settings=True),
                                carriers=("hand",)),
    "new-tokens": Conduct("signs a provider token for each attempt", new_tokens=True, tries=3),
    "repeats-410": Conduct("sends again after 410", repeats_410=True, tries=4),
    "own-connections": Conduct("opens a connection for each push", own_connections=True),
    "apart": Conduct("sends HEADERS and DATA apart", apart=True, carriers=("hand", "httpx", "node", "go")),
    "cancels": Conduct("cancels attempts after a short time", cancels=True, carriers=("hand", "httpx", "node", "go")),
}


def device(number):
    return hashlib.sha256(f"device {number}".encode()).hexdigest()


@dataclasses.dataclass(frozen=True)
class Push:
    """A push with the number `n` in its payload. Pushes to the same device have texts of different lengths."""

    n: int
    device: str

    @property
    def body(self):
        return b'{"aps":{"alert":"hello%s"},"n":%d}' % (b"!" * self.n, self.n)


def pushes(count, devices):
    """Returns `count` pushes to so many devices in turn."""
    return [Push(n, device(n % devices)) for n in range(count)]


@dataclasses.dataclass
class Entry:
    """One attempt in a provider's log; `result` is a `Reply`, an error, or None if the run ended before."""

    n: int
    apns_id: str
    result: object = None


class Provider:
    """Sends pushes over a carrier. `sign(issued_at)` returns a provider token, `authority` is the server's host and port."""

    def __init__(self, conduct, carrier, sign, authority, seed):
        self.conduct, self.carrier, self.seed = conduct, carrier, seed
        self._sign, self._authority = sign, authority
        self.log = []  # entries, in the order in which they were sent
        self.ends = {}  # n: what became of the push, in words
        self.halted = None  # why it stopped sending
        self._dropped = set()
        self._token = None
        self._issued_at = int(time.time()) - TOKEN_AGE

    async def run(self, pushes):
        if self.conduct.resends_batches:
            for at in range(0, len(pushes), BATCH):
                await self._deliver_batch(pushes[at:at + BATCH])
        else:
            waiting = collections.deque(pushes)
            await asyncio.gather(*(self._work(waiting) for _ in range(WIDTH)))

    async def _work(self, waiting):
        while waiting and not self.halted:
            push = waiting.popleft()
            self.ends[push.n] = await self._deliver(push)

    async def _deliver(self, push):
        pauses = 0
        for attempt in range(self.conduct.tries):
            if push.device in self._dropped and not self.conduct.repeats_410:
                return "not sent to a device that is gone"
            if self.halted:
                return self.halted
            result, token = await self._attempt(push, attempt)
            decision = self._decide(push, result, token)
            if decision not in ("again", "pause"):
                return decision
            if decision == "pause" and self.conduct.pauses:
                await self._pause(pauses)
                pauses += 1
        return "too many attempts"

    async def _deliver_batch(self, batch):
        waiting = list(batch)
        for attempt in range(self.conduct.tries):
            waiting = [push for push in waiting if push.device not in self._dropped]
            results = await asyncio.gather(*(self._attempt(push, attempt) for push in waiting))
            decisions = [self._decide(push, *result) for push, result in zip(waiting, results)]
            self.ends |= {push.n: decision for push, decision in zip(waiting, decisions)}
            if self.halted:
                return
            if any(isinstance(result, Lost) for result, _ in results):
                waiting = list(batch)
            else:
                waiting = [push for push, decision in zip(waiting, decisions) if decision in ("again", "pause")]
            if not waiting:
                return
            await self._pause(attempt)

    async def _attempt(self, push, attempt):
        """Returns the result of one attempt and its provider token."""
        number = attempt if self.conduct.new_ids else 0
        entry = Entry(push.n, str(uuid.UUID(int=(self.seed << 64) + (push.n << 16) + number)))
        self.log.append(entry)
        token = self._current_token()
        request = Request(
            f"/3/device/{push.device}",
            {"authorization": f"bearer {token}", "apns-topic": TOPIC, "apns-push-type": "alert",
             "apns-id": entry.apns_id, "content-length": str(len(push.body))},
            push.body, self._authority, own_connection=self.conduct.own_connections,
            apart=APART if self.conduct.apart else None)
        if self.conduct.cancels and attempt < 2 and (push.n + attempt) % 3 == 0:
            request.cancel_after = CANCEL_AFTER
            # Every other one is canceled before the request is complete.
            request.apart = 2 * CANCEL_AFTER if push.n % 2 else None
        try:
            entry.result = await self.carrier.send(request)
        except NoReply as error:
            entry.result = error
        return entry.result, token

    def _decide(self, push, result, token):
        """Returns `again` (at once), `pause`, or in words what became of the push."""
        if isinstance(result, Untrusted):
            self.halted = "the server's certificate is not valid"
            return self.halted
        status = None if isinstance(result, NoReply) else result.status
        if status == 200:
            return "delivered"
        if self.conduct.drops_errors or status == 503 and self.conduct.gives_up_at_503:
            return f"dropped after {result}"
        if isinstance(result, Refused) or self.conduct.retries_everything:
            return "again"
        if status is None or status == 429 or status >= 500:
            if status == 503 and result.reason == "Shutdown":
                self.carrier.retire()
            return "pause"
        if status == 410 and self.conduct.repeats_410:
            return "pause"
        if result.reason == "ExpiredProviderToken":
            if token == self._token:
                self._token, self._issued_at = None, int(time.time())
                self.carrier.retire()
            return "again"
        if result.reason == "IdleTimeout":
            return "again"
        if status == 403:
            self.halted = f"the credential is not good here: {result}"
            return self.halted
        if status == 410 or result.reason == "BadDeviceToken":
            self._dropped.add(push.device)
        return f"rejected: {result}"

    def _current_token(self):
        if self._token is None or self.conduct.new_tokens:
            self._token = self._sign(self._issued_at)
            # Tokens of the same second are equal for APNs.
            self._issued_at += 1 if self.conduct.new_tokens else 0
        return self._token

    @staticmethod
    async def _pause(number):
        await asyncio.sleep(min(FIRST_PAUSE * GROWTH ** number, LONGEST_PAUSE))

