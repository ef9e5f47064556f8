"""Sends a push with httpx: a JSON description on stdin, the response as JSON on stdout."""

import json
import ssl
import sys

import httpx

push = json.load(sys.stdin)
context = ssl.create_default_context(cafile=push["ca"])
if push["certificate"]:
    context.load_cert_chain(push["certificate"], push["certificate_key"])
if push["tls"]:
    context.minimum_version = context.maximum_version = ssl.TLSVersion["TLSv" + push["tls"].replace(".", "_")]
url, headers, extensions = push["url"], push["headers"], {}
if push["address"]:
    # httpx has no resolver setting: it connects to the address and gets the name for TLS and for the request
    # separately.
    url = f"https://{push['address']}:{push['port']}"
    headers = {**headers, "host": push["host"]}
    extensions = {"sni_hostname": push["host"]}
with httpx.Client(http2=True, verify=context) as client:
    response = client.post(
        f"{url}/3/device/{push['device']}", headers=headers, content=push["payload"], extensions=extensions)
assert response.http_version == "HTTP/2", response.http_version
print(json.dumps({"status": response.status_code, "apns_id": response.headers.get("apns-id"), "body": response.text}))
