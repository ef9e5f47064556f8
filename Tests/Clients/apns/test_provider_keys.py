"""User-supplied keys, trusted by their public keys and limited to an environment or to topics."""

import pathlib

import pytest

from support.tokens import foreign_key, public_half
from support.wire import connect, push_headers

OWN, OTHER = "OWNKEY0001", "OTHERKEY01"


@pytest.fixture
def trusted(server):
    """`trusted(key_id, topics=[...])` makes a key, registers its public key over the API and returns the private
    key.
    """
    made = []

    def truster(key_id, **limits):
        pem = foreign_key()
        body = {"team_id": server.team_id, "public_key": public_half(pem), **limits}
        server.api("PUT", f"/keys/{key_id}", body)
        made.append(key_id)
        return pem

    yield truster
    for key_id in made:
        server.api("DELETE", f"/keys/{key_id}")


def push(server, wire, device, key=None, key_id=None, team_id=None, **changes):
    """Sends a push with a token signed with the given key, or with the server's own; returns the status and the
    reason.
    """
    named = {"key": key, "key_id": key_id, "team_id": team_id}
    token = server.token(**{name: value for name, value in named.items() if value})
    response = wire.push(push_headers(server, device, authorization="bearer " + token, **changes))
    return response.status, response.body.decode().removeprefix('{"reason":"').removesuffix('"}')


def test_a_key_is_accepted_as_soon_as_it_is_trusted(server, trusted, device):
    with connect(server) as wire:
        pem = foreign_key()
        assert push(server, wire, device, pem, OWN) == (403, "InvalidProviderToken")
        pem = trusted(OWN)
        assert push(server, wire, device, pem, OWN) == (200, "")
    assert server.pushes(device_token=device)[-1]["auth"]["key_id"] == OWN


def test_a_removed_key_is_rejected_on_an_open_connection(server, device):
    pem = foreign_key()
    server.api("PUT", f"/keys/{OWN}", {"team_id": server.team_id, "public_key": public_half(pem)})
    token = "bearer " + server.token(key=pem, key_id=OWN)
    with connect(server) as wire:
        assert wire.push(push_headers(server, device, authorization=token)).status == 200
        server.api("DELETE", f"/keys/{OWN}")
        assert wire.push(push_headers(server, device, authorization=token)).status == 403


LIMITS = [
    ({"environment": "sandbox"}, "com.example.app", (200, "")),
    ({"environment": "production"}, "com.example.app", (403, "BadEnvironmentKeyInToken")),
    ({"topics": ["com.example.app"]}, "com.example.app", (200, "")),
    ({"topics": ["com.example.app"]}, "com.example.other", (400, "TopicDisallowed")),
]


@pytest.mark.parametrize(("limits", "topic", "expected"), LIMITS)
def test_restrictions_of_a_key(server, trusted, device, limits, topic, expected):
    pem = trusted(OWN, **limits)
    with connect(server) as wire:
        assert push(server, wire, device, pem, OWN, apns_topic=topic) == expected


def test_a_connection_belongs_to_the_team_of_its_first_token(server, trusted, device):
    pem = trusted(OWN, team_id="OTHERTEAM1")
    with connect(server) as wire:
        assert push(server, wire, device) == (200, "")
        assert push(server, wire, device, pem, OWN, "OTHERTEAM1") == (403, "InvalidProviderToken")
    with connect(server) as wire:
        assert push(server, wire, device, pem, OWN, "OTHERTEAM1") == (200, "")
        assert push(server, wire, device) == (403, "InvalidProviderToken")


@pytest.mark.parametrize(("related", "expected"), [(None, (403, "UnrelatedKeyIdInToken")), (OTHER, (200, ""))],
                         ids=["unrelated", "related"])
def test_topic_keys_share_a_connection_only_when_related(server, trusted, device, related, expected):
    limits = {"topics": ["com.example.app"], "related_key_id": related}
    first, second = trusted(OWN, **limits), trusted(OTHER, topics=["com.example.app"])
    with connect(server) as wire:
        assert push(server, wire, device, first, OWN) == (200, "")
        assert push(server, wire, device, second, OTHER) == expected


def test_keys_over_the_api(start, tmp_path):
    server = start(certs=tmp_path / "certs")
    members = {"key_id": OWN, "team_id": "ACMETEAM01", "environment": "sandbox", "topics": ["com.acme.app"],
               "related_key_id": OTHER}
    body = {**members, "public_key": public_half(foreign_key())}
    created = server.request("PUT", f"/api/v1/keys/{OWN}", body)
    assert (created.status, created.headers["location"], created.json) == (
        201, f"/api/v1/keys/{OWN}", {**members, "team_topics": None})
    assert server.request("PUT", f"/api/v1/keys/{OWN}", body).status == 200
    assert [key["key_id"] for key in server.api("GET", "/keys")["items"]] == sorted([server.key_id, OWN])
    assert server.request("DELETE", f"/api/v1/keys/{OWN}").status == 204
    assert [key["key_id"] for key in server.api("GET", "/keys")["items"]] == [server.key_id]


def test_keys_are_listed_without_private_keys(server):
    listed = server.request("GET", "/api/v1/keys")
    assert [key["key_id"] for key in listed.json["items"]] == [server.key_id]
    assert b"PRIVATE" not in listed.body


def test_a_key_in_provider_yaml_is_trusted_from_the_start(start, tmp_path, device):
    folder = tmp_path / "certs"
    assert start(certs=folder).stop() == 0
    pem = foreign_key()
    public = "".join(f"      {line}\n" for line in public_half(pem).splitlines())
    listed = pathlib.Path(folder / "provider.yaml")
    listed.write_text(
        "keys:\n"
        "  - key_id: MOCKKEY001\n    team_id: MOCKTEAM01\n    file: AuthKey_MOCKKEY001.p8\n"
        f"  - key_id: {OWN}\n    team_id: DEF123GHIJ\n    public_key: |\n{public}")
    server = start(certs=folder)
    with connect(server) as wire:
        assert push(server, wire, device, pem, OWN, "DEF123GHIJ") == (200, "")
    with connect(server) as wire:
        assert push(server, wire, device) == (200, ""), "the server's own key is still there"
