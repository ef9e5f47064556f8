"""Sends a push with apns2 (PyAPNs2): a JSON description on stdin, the result as JSON on stdout."""

import collections
import collections.abc
import json
import sys

# Its HTTP/2 library imports these from where Python had them until 3.9.
for name in ("Iterable", "Mapping", "MutableMapping", "MutableSet", "Sequence"):
    setattr(collections, name, getattr(collections.abc, name))

from apns2.client import APNsClient, NotificationPriority, NotificationType  # noqa: E402
from apns2.credentials import CertificateCredentials, TokenCredentials  # noqa: E402
from apns2.payload import Payload, PayloadAlert  # noqa: E402

push = json.load(sys.stdin)
APNsClient.SANDBOX_SERVER, APNsClient.DEFAULT_PORT = push["host"], push["port"]
if push["certificate"]:
    credentials = CertificateCredentials(push["certificate_and_key"])
else:
    credentials = TokenCredentials(push["key"], push["key_id"], push["team_id"])
custom = json.loads(push["payload"])
aps = custom.pop("aps")
payload = Payload(
    alert=PayloadAlert(**aps["alert"]) if "alert" in aps else None, sound=aps.get("sound"),
    content_available="content-available" in aps, custom=custom)
client = APNsClient(credentials, use_sandbox=True)
stream = client.send_notification_async(
    push["device"], payload, push["topic"], NotificationPriority(str(push["priority"])),
    collapse_id=push["collapse_id"], push_type=NotificationType(push["push_type"]))
result = client.get_notification_result(stream)
if result == "Success":
    report = {"status": 200, "reason": None}
elif isinstance(result, tuple):
    report = {"status": 410, "reason": result[0], "timestamp": result[1]}
else:
    report = {"reason": result}
print(json.dumps(report))
