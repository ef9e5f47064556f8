"""A small provider: sends pushes to APNs, keeps its provider token, retries what may be retried."""

import asyncio
import os
import random
import ssl
import time
import uuid
from pathlib import Path

import httpx
import jwt

TOKEN_LIFETIME = 50 * 60  # seconds; APNs accepts a provider token for an hour
RETRIED = {429, 500, 503}


class Provider:
    """Sends pushes over one HTTP/2 connection. `first_pause` is the pause in seconds before the first retry."""

    def __init__(self, url, key, key_id, team_id, *, ca=None, first_pause=1.0, attempts=5):
        self.key, self.key_id, self.team_id = key, key_id, team_id
        self.first_pause, self.attempts = first_pause, attempts
        self.unregistered = set()
        self._token, self._signed_at = None, 0.0
        context = ssl.create_default_context(cafile=ca)
        self._client = httpx.AsyncClient(base_url=url, http2=True, verify=context, trust_env=False)

    @classmethod
    def from_environment(cls, **settings):
        """A provider for the server that `apns-mock exec` started."""
        return cls(
            f"https://{os.environ['APNS_MOCK_APNS']}", Path(os.environ["APNS_MOCK_KEY"]).read_text(),
            os.environ["APNS_MOCK_KEY_ID"], os.environ["APNS_MOCK_TEAM_ID"], ca=os.environ["APNS_MOCK_CA"], **settings)

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self._client.aclose()

    def provider_token(self):
        """Returns the current provider token, signed again shortly before it expires."""
        now = time.time()
        if self._token is None or now - self._signed_at > TOKEN_LIFETIME:
            claims = {"iss": self.team_id, "iat": int(now)}
            self._token = jwt.encode(claims, self.key, algorithm="ES256", headers={"kid": self.key_id})
            self._signed_at = now
        return self._token

    async def send(self, device_token, payload, topic, push_type="alert"):
        """Sends one push. Retries 429, 5xx and lost connections with growing pauses; returns the last response.

        Every attempt has the same `apns-id`. A device token that gets a 410 is added to `unregistered`.

        Raises httpx.TransportError if the last attempt got no response."""
        apns_id = str(uuid.uuid4())
        for attempt in range(1, self.attempts + 1):
            try:
                response = await self._client.post(
                    f"/3/device/{device_token}", json=payload,
                    headers={
                        "authorization": f"bearer {self.provider_token()}", "apns-id": apns_id, "apns-topic": topic,
                        "apns-push-type": push_type,
                    })
            except httpx.TransportError:
                if attempt == self.attempts:
                    raise
            else:
                if response.status_code == 410:
                    self.unregistered.add(device_token)
                if response.status_code not in RETRIED or attempt == self.attempts:
                    return response
            await asyncio.sleep(self.first_pause * 2 ** (attempt - 1) * random.uniform(1, 1.2))


async def main():
    async with Provider.from_environment() as provider:
        response = await provider.send("ab12" * 16, {"aps": {"alert": "Hello"}}, "com.example.app")
    print(response.status_code, response.headers["apns-id"])


if __name__ == "__main__":
    asyncio.run(main())
