"""Sends many pushes at once with aioapns, over one connection at a time, after one push that is accepted and raises the
number of concurrent streams. Reads a JSON description on stdin, prints the results as JSON on stdout.
"""

import asyncio
import collections
import json
import pathlib
import ssl
import sys

from aioapns import APNs, NotificationRequest, PushType
from aioapns.connection import APNsDevelopmentClientProtocol

described = json.load(sys.stdin)
received = collections.Counter()  # bytes of DATA by connection


class Protocol(APNsDevelopmentClientProtocol):
    """The protocol of aioapns, which also counts the bytes of DATA frames."""

    APNS_SERVER = "localhost"
    APNS_PORT = described["port"]

    def on_data_received(self, raw_data, stream_id):
        received[self] += len(raw_data)
        super().on_data_received(raw_data, stream_id)


async def send():
    client = APNs(
        key=pathlib.Path(described["key"]).read_text(), key_id=described["key_id"], team_id=described["team_id"],
        topic="com.example.app", use_sandbox=True, max_connections=1,
        ssl_context=ssl.create_default_context(cafile=described["ca"]))
    client.pool.protocol_class = Protocol

    def push(device):
        return client.send_notification(NotificationRequest(
            device_token=device, message={"aps": {"alert": "hello"}}, push_type=PushType.ALERT))

    first = await push(described["accepted"])
    pushes = [asyncio.create_task(push(described["rejected"])) for _ in range(described["count"])]
    done, waiting = await asyncio.wait(pushes, timeout=described["seconds"])
    for one in waiting:
        one.cancel()
    outcomes = collections.Counter(
        type(one.exception()).__name__ if one.exception() else one.result().status for one in done)
    outcomes["waiting"] = len(waiting)
    return {"first": first.status, "outcomes": outcomes, "received": list(received.values())}


print(json.dumps(asyncio.run(send())))
