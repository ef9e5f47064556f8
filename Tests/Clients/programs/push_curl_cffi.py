"""Sends a push with curl_cffi (curl on BoringSSL): a JSON description on stdin, the response as JSON on stdout."""

import json
import sys

from curl_cffi import CurlHttpVersion, CurlOpt, requests

push = json.load(sys.stdin)
options = {}
if push["address"]:
    options[CurlOpt.RESOLVE] = [f"{push['host']}:{push['port']}:{push['address']}"]
with requests.Session(verify=push["ca"], curl_options=options) as session:
    certificate = (push["certificate"], push["certificate_key"]) if push["certificate"] else None
    response = session.post(
        f"{push['url']}/3/device/{push['device']}", headers=push["headers"], data=push["payload"].encode(),
        cert=certificate)
assert response.http_version == CurlHttpVersion.V2_0, response.http_version
print(json.dumps({"status": response.status_code, "apns_id": response.headers.get("apns-id"), "body": response.text}))
