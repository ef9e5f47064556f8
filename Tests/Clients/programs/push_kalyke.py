"""Sends a push with kalyke, which supports no host but Apple's: a JSON description on stdin, the result as JSON on
stdout.
"""

import asyncio
import json
import sys
import warnings

from kalyke import ApnsClient, ApnsConfig, ApnsPriority, ApnsPushType, VoIPApnsConfig, VoIPCertificateClient
from kalyke.exceptions import ApnsProviderException

push = json.load(sys.stdin)
named = {
    "topic": push["topic"], "identifier": push["apns_id"], "collapse_id": push["collapse_id"],
    "priority": ApnsPriority(push["priority"]),
}
if push["certificate"]:
    warnings.simplefilter("ignore", DeprecationWarning)  # the library supports certificates for VoIP only, and deprecates them
    config = VoIPApnsConfig(**named)
    client = VoIPCertificateClient(
        use_sandbox=True, auth_key_filepath=push["certificate"], key_filepath=push["certificate_key"])
else:
    config = ApnsConfig(**named, push_type=ApnsPushType(push["push_type"]))
    client = ApnsClient(
        use_sandbox=True, team_id=push["team_id"], auth_key_id=push["key_id"], auth_key_filepath=push["key"])
try:
    report = {"status": 200, "reason": None, "apns_id": asyncio.run(
        client.send_message(device_token=push["device"], payload=json.loads(push["payload"]), apns_config=config))}
except ApnsProviderException as error:
    report = {"reason": type(error).__name__, **error.error}
print(json.dumps(report))
