"""Access to the admin API: host names that DNS rebinding could use are refused, and so are requests without the
configured token.
"""

import pytest


@pytest.mark.parametrize("host", [
    "localhost", "LOCALHOST:8197", "localhost:1", "localhost.", "app.localhost", "127.0.0.1", "127.0.0.1:1", "[::1]",
    "[::1]:8197", "[fe80::1]", "192.168.0.7", "192.168.1.5:8197", "apns-mock", "apns-mock:8197",
])
def test_names_of_this_machine_are_accepted(server, host):
    assert server.request("GET", "/api/v1/status", headers={"host": host}).status == 200


@pytest.mark.parametrize("path", ["/api/v1/pushes", "/api/v1/status", "/ca.pem", "/ca-next.pem"])
@pytest.mark.parametrize("host", ["evil.example", "evil.example:8197", "localhost.evil.example", "127.0.0.1.evil.org"])
def test_foreign_host_names_are_rejected(server, path, host):
    """DNS rebinding: the host name of a web page resolves to the server's address."""
    response = server.request("GET", path, headers={"host": host})
    assert response.status == 403
    assert "--allow-host" in response.json["hint"]


def test_health_is_reported_under_any_host_name(server):
    for path in ("/livez", "/readyz"):
        assert server.request("GET", path, headers={"host": "evil.example"}).status == 200


def test_allow_host_accepts_another_name(start):
    server = start("--allow-host", "mock.CI")
    for host, status in [("mock.ci:8197", 200), ("MOCK.ci", 200), ("xmock.ci", 403), ("mock.ci.evil.example", 403)]:
        assert server.request("GET", "/api/v1/status", headers={"host": host}).status == status, host


@pytest.mark.parametrize("origin", ["https://evil.example", "http://localhost:1", "null", "http://127.0.0.1"])
@pytest.mark.parametrize(("method", "path"), [
    ("POST", "/api/v1/reset"), ("DELETE", "/api/v1/pushes?all=true"), ("PUT", "/api/v1/clock"),
])
def test_a_web_page_changes_nothing(server, device, method, path, origin):
    response = server.request(method, path, {} if method != "DELETE" else None, headers={"origin": origin})
    assert response.status == 403
    assert "access-control-allow-origin" not in response.headers


def test_the_own_origin_is_allowed(server):
    port = server.admin_port
    for origin, status in [
        (f"http://127.0.0.1:{port}", 200), (f"https://127.0.0.1:{port}", 200), (f"HTTP://127.0.0.1:{port}", 403),
        (f"ftp://127.0.0.1:{port}", 403), (f"http://localhost:{port}", 403), ("http://127.0.0.1:1", 403),
        (f"http://127.0.0.1:{port}.evil.example", 403), ("", 403), ("file://", 403),
    ]:
        for method, path in [("GET", "/pushes"), ("POST", "/connections/close")]:
            body = {"client": "127.0.0.2"} if method == "POST" else None
            response = server.request(method, "/api/v1" + path, body, headers={"origin": origin})
            assert response.status == status, (method, origin)
    for host, origin in [("localhost", "http://localhost:80"), ("localhost:443", "https://localhost")]:
        response = server.request("GET", "/api/v1/pushes", headers={"host": host, "origin": origin})
        assert response.status == 200, "the default port is implied"


def test_responses_allow_no_other_origin(server):
    response = server.request("GET", "/api/v1/pushes", headers={"origin": "https://evil.example"})
    assert "access-control-allow-origin" not in response.headers
    assert "set-cookie" not in response.headers


@pytest.mark.parametrize("headers", [
    {"origin": "https://evil.example"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site"},
])
@pytest.mark.parametrize("path", ["/api/v1/pushes", "/api/v1/stats", "/api/v1/export"])
def test_a_page_of_another_origin_reads_nothing(server, path, headers):
    response = server.request("GET", path, headers=headers)
    assert response.status == 403
    assert "hint" in response.json


@pytest.mark.parametrize("site", ["same-origin", "none"])
def test_same_origin_and_direct_requests_are_served(server, site):
    assert server.request("GET", "/api/v1/pushes", headers={"sec-fetch-site": site}).status == 200


def test_a_configured_token_is_required(start):
    server = start("--admin-token", "open-sesame")
    assert server.request("GET", "/api/v1/pushes").status == 401
    for authorization, status in [
        ("Bearer open-sesame", 200), ("bearer open-sesame", 200), ("Bearer open-sesam", 401), ("Bearer open-sesamee", 401),
        ("Bearer open-sesameopen-sesame", 401), ("Bearer OPEN-SESAME", 401), ("Bearer ", 401), ("Bearer", 401),
        ("open-sesame", 401), ("Basic open-sesame", 401), ("", 401),
    ]:
        response = server.request("GET", "/api/v1/pushes", headers={"authorization": authorization})
        assert response.status == status, authorization
        assert b"open-sesame" not in response.body
    assert server.request("GET", "/livez").status == 200
    assert server.facts["admin_token"] == "open-sesame"
    assert server.command("ls").returncode == 0, "commands take the token from the port file"
    assert "open-sesame" not in server.log()


def test_a_token_can_be_generated_or_read_from_a_file(start, tmp_path):
    made_up = start("--admin-token", "auto").facts["admin_token"]
    assert len(made_up) >= 16
    file = tmp_path / "token"
    file.write_text("from-a-file\n")
    server = start(environment={"APNS_MOCK_ADMIN_TOKEN_FILE": str(file)})
    assert server.facts["admin_token"] == "from-a-file"


def test_a_public_admin_listener_without_a_token_warns(start):
    server = start(admin="0.0.0.0:0")
    assert server.logged("--admin-token")
