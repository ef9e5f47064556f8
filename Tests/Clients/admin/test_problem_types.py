"""The `type` of problem documents, by which programs distinguish errors, and the API description without the web UI's files."""

import json

import pytest

PROBLEMS = [
    ("GET", "/api/v1/pushes?topik=x", None, 400, "invalid-query"), ("GET", "/api/v1/pushes?q=topik:x", None, 400, "invalid-query"),
    ("GET", "/api/v1/devices?limit=0", None, 400, "invalid-request"), ("PUT", "/api/v1/clock", b"{", 400, "invalid-request"),
    ("POST", "/api/v1/verify", b'{"expect": 1}', 400, "invalid-document"),
    ("POST", "/api/v1/rules", b'{"do": {}}', 422, "invalid-document"),
    ("PUT", "/api/v1/profile", b'{"name": "nosuch"}', 422, "not-found"), ("GET", "/api/v1/profiles/nosuch", None, 404, "not-found"),
    ("GET", "/api/v1/nosuch", None, 404, "not-found"), ("GET", "/api/v1/pushes/999999999", None, 404, "not-found"),
    ("DELETE", "/api/v1/clock", None, 405, "method-not-allowed"),
    ("PUT", "/api/v1/clock", b"x" * 1_100_000, 413, "too-large"),
]


@pytest.mark.parametrize(("method", "path", "body", "status", "kind"), PROBLEMS, ids=[f"{row[0]} {row[1]}" for row in PROBLEMS])
def test_a_problem_has_the_type_of_its_kind(server, method, path, body, status, kind):
    response = server.request(method, path, body, headers={"content-type": "application/json"} if body else None)
    assert (response.status, response.json["type"]) == (status, f"apns-mock:{kind}")
    assert response.headers["content-type"] == "application/problem+json"


def test_access_and_content_types(start):
    server = start("--admin-token", "secret")
    for headers, status, kind in [({"authorization": "Bearer wrong"}, 401, "unauthorized"), ({"host": "evil.example"}, 403, "forbidden")]:
        response = server.request("GET", "/api/v1/status", headers=headers)
        assert (response.status, response.json["type"]) == (status, f"apns-mock:{kind}")
    response = start().request("PUT", "/api/v1/clock", b"{}", headers={"content-type": "text/plain"})
    assert (response.status, response.json["type"]) == (415, "apns-mock:unsupported-media-type")


def test_the_description_has_all_kinds_and_no_files_of_the_web_ui(server):
    description = server.request("GET", "/openapi.json").json
    kinds = description["components"]["schemas"]["Problem"]["properties"]["type"]["enum"]
    assert {f"apns-mock:{row[4]}" for row in PROBLEMS} <= set(kinds)
    assert not [path for path in description["paths"] if path.startswith("/page")]
    assert "text/css" not in json.dumps(description)
