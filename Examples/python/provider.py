"""A small provider: sends a queue of notifications to APNs, retries what may be retried, and removes dead devices."""

import asyncio
import contextlib
import os
import random
import ssl
import time
import uuid
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import jwt

TOKEN_LIFETIME = 50 * 60  # seconds; APNs accepts a provider token for an hour
RETRIED = {429, 500, 503}
# The reasons for which the device token will not become valid again.
DEAD = {"BadDeviceToken", "Unregistered", "ExpiredToken"}


@dataclass
class Notification:
    """A notification for one device. Every attempt to send it has the same `apns_id`."""

    device_token: str
    payload: dict
    topic: str
    push_type: str = "alert"
    apns_id: str = field(default_factory=lambda: str(uuid.uuid4()))


@dataclass
class Result:
    """The last response to a notification; `status` is None if the last attempt got no response."""

    notification: Notification
    attempts: int
    status: int | None = None
    reason: str | None = None


class Provider:
    """Sends notifications over HTTP/2.

    `devices` maps each registered device token to the time of its registration, in seconds since 1970; the provider
    removes the tokens that APNs reports as dead. `first_delay` is the delay in seconds before the first retry; each
    further delay is twice as long. `now` is the clock that provider tokens are dated with.
    """

    def __init__(
        self, url, key, key_id, team_id, *, ca=None, devices=None, concurrency=4, first_delay=1.0, attempts=5,
        now=time.time,
    ):
        self.url, self.key, self.key_id, self.team_id = url, key, key_id, team_id
        self.devices = {} if devices is None else devices
        self.concurrency, self.first_delay, self.attempts, self.now = concurrency, first_delay, attempts, now
        self._queue = deque()
        self._token, self._signed_at = None, 0.0
        self._tls = ssl.create_default_context(cafile=ca)
        self._client = self._connect()
        self._retired = []

    def enqueue(self, device_token, payload, topic, push_type="alert"):
        """Adds a notification to the queue."""
        self._queue.append(Notification(device_token, payload, topic, push_type))

    async def send_queue(self):
        """Sends all notifications of the queue; returns their results."""
        results = []

        async def worker():
            while self._queue:
                results.append(await self._send(self._queue.popleft()))

        await asyncio.gather(*(worker() for _ in range(self.concurrency)))
        return results

    async def aclose(self):
        """Closes all connections."""
        for client in [*self._retired, self._client]:
            await client.aclose()

    def _connect(self):
        return httpx.AsyncClient(base_url=self.url, http2=True, verify=self._tls, trust_env=False)

    async def _send(self, notification):
        """Sends a notification until it is accepted, permanently rejected, or out of attempts."""
        result = Result(notification, attempts=0)
        while result.attempts < self.attempts:
            if result.attempts > 0 and result.reason != "ExpiredProviderToken":
                delay = self.first_delay * 2 ** (result.attempts - 1)
                await asyncio.sleep(delay * random.uniform(1, 1.2))
            result.attempts += 1
            result.status = result.reason = None
            token, client = self._provider_token(), self._client
            try:
                response = await client.post(
                    f"/3/device/{notification.device_token}", json=notification.payload,
                    headers={
                        "authorization": f"bearer {token}", "apns-id": notification.apns_id,
                        "apns-topic": notification.topic, "apns-push-type": notification.push_type,
                    })
            except httpx.TransportError:
                continue
            body = {} if response.is_success else response.json()
            result.status, result.reason = response.status_code, body.get("reason")
            if result.reason in DEAD:
                self._remove(notification.device_token, body.get("timestamp"))
            if result.reason == "ExpiredProviderToken":
                self._renew(token, client)
            elif result.status not in RETRIED:
                break
        return result

    def _provider_token(self):
        """Returns the current provider token, signed again shortly before it expires."""
        now = self.now()
        if self._token is None or now - self._signed_at > TOKEN_LIFETIME:
            claims = {"iss": self.team_id, "iat": int(now)}
            self._token = jwt.encode(claims, self.key, algorithm="ES256", headers={"kid": self.key_id})
            self._signed_at = now
        return self._token

    def _renew(self, token, client):
        """Discards an expired provider token, and its connection, on which APNs rejects every further push."""
        if self._token == token:
            self._token = None
        if self._client is client:
            self._retired.append(client)
            self._client = self._connect()

    def _remove(self, device_token, timestamp):
        """Removes a dead device token, unless the app has registered it again since `timestamp`, in milliseconds."""
        registered = self.devices.get(device_token)
        if registered is not None and (timestamp is None or registered * 1000 <= timestamp):
            del self.devices[device_token]


async def main():
    """Sends one push to the server that `apns-mock exec` started."""
    environment = {name: os.environ[f"APNS_MOCK_{name}"] for name in ("APNS", "KEY", "KEY_ID", "TEAM_ID", "CA")}
    provider = Provider(
        f"https://{environment['APNS']}", Path(environment["KEY"]).read_text(), environment["KEY_ID"],
        environment["TEAM_ID"], ca=environment["CA"])
    async with contextlib.aclosing(provider):
        provider.enqueue("ab12" * 16, {"aps": {"alert": "Hello"}}, "com.example.app")
        (result,) = await provider.send_queue()
    print(result.status, result.notification.apns_id)


if __name__ == "__main__":
    asyncio.run(main())
