"""A push with kalyke: a JSON description on stdin, what it tells as JSON on stdout. It knows no host but Apple's."""

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
    warnings.simplefilter("ignore", DeprecationWarning)  # certificates are for VoIP alone in this library, and ending
    config = VoIPApnsConfig(**named)
    client = VoIPCertificateClient(
        use_sandbox=True, auth_key_filepath=push["certificate"], key_filepath=push["certificate_key"])
else:
    config = ApnsConfig(**named, push_type=ApnsPushType(push["push_type"]))
    client = ApnsClient(
        use_sandbox=True, team_id=push["team_id"], auth_key_id=push["key_id"], auth_key_filepath=push["key"])
try:
    told = {"status": 200, "reason": None, "apns_id": asyncio.run(
        client.send_message(device_token=push["device"], payload=json.loads(push["payload"]), apns_config=config))}
except ApnsProviderException as error:
    told = {"reason": type(error).__name__, **error.error}
print(json.dumps(told))
