"""Sends pushes with aioapns: a JSON description on stdin, the last response as JSON on stdout."""

import asyncio
import json
import pathlib
import ssl
import sys

from aioapns import APNs, NotificationRequest, PushType
from aioapns.connection import APNsDevelopmentClientProtocol

push = json.load(sys.stdin)
APNsDevelopmentClientProtocol.APNS_SERVER = push["host"]
APNsDevelopmentClientProtocol.APNS_PORT = push["port"]
context = ssl.create_default_context(cafile=push["ca"])
if push["tls"]:
    context.minimum_version = context.maximum_version = ssl.TLSVersion["TLSv" + push["tls"].replace(".", "_")]
if push["certificate"]:
    credential = {"client_cert": push["certificate_and_key"]}
else:
    key = pathlib.Path(push["key"]).read_text()
    credential = {"key": key, "key_id": push["key_id"], "team_id": push["team_id"]}


async def send():
    client = APNs(**credential, topic=push["topic"], use_sandbox=True, ssl_context=context)
    for count in range(push["connections"]):
        request = NotificationRequest(
            device_token=push["device"], message=json.loads(push["payload"]), notification_id=push["apns_id"],
            priority=push["priority"], collapse_key=push["collapse_id"], push_type=PushType(push["push_type"]))
        result = await client.send_notification(request)
        transport = client.pool.connections[0].transport
        while count + 1 < push["connections"] and client.pool.connections:
            await asyncio.sleep(0.01)  # until the server has closed
    client.pool.close()
    return result, transport.get_extra_info("ssl_object").selected_alpn_protocol()


result, alpn = asyncio.run(send())
print(json.dumps({
    "status": result.status, "apns_id": result.notification_id, "reason": result.description,
    "timestamp": result.timestamp, "alpn": alpn,
}))
