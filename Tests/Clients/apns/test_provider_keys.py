"""User-supplied keys, trusted by their public keys and limited to an environment or to topics."""

import json
import pathlib

import pytest

from support.server import run
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


# Team topics

ACME, APPS = "ACMETEAM01", ["com.acme.app", "com.acme.other"]


def private_key(folder, key_id):
    """Writes a key as downloaded from Apple; returns the path of the file and the key."""
    pem = foreign_key()
    path = folder / f"AuthKey_{key_id}.p8"
    path.write_text(pem)
    return path, pem


def test_only_the_topics_of_the_team_are_known(start, tmp_path, device):
    server = start("--topics", "known", certs=tmp_path / "certs")
    acme = {}
    for key_id, flags in ((OWN, ["--team-topics", ",".join(APPS)]), (OTHER, [])):
        path, acme[key_id] = private_key(tmp_path, key_id)
        added = server.command("key", "add", path, "--team-id", ACME, *flags, "--certs", server.certs, "--json")
        assert added.returncode == 0, added.stderr
        assert json.loads(added.stdout)["team_topics"] == (APPS if flags else None)

    def answers(server):
        def sends(topic, key_id=OWN, kind="alert"):
            with connect(server) as wire:  # One each, because every push has a new provider token.
                return push(server, wire, device, acme[key_id], key_id, ACME, apns_topic=topic, apns_push_type=kind)
        return [
            sends(APPS[0]), sends(APPS[1]), sends(APPS[0] + ".voip", kind="voip"), sends(APPS[0], OTHER),
            sends("com.acme.ap"), sends("com.acme.ap", OTHER), sends("com.acme.ap.voip", kind="voip"),
            sends("com.example.app")]

    expected = [(200, "")] * 4 + [(400, "TopicDisallowed")] * 4
    assert answers(server) == expected
    detail = server.pushes()[-1]["verdict"]["checks"][-1]["detail"]
    assert f"is not the topic of an app of team {ACME}" in detail and "apns-mock key add --team-topics" in detail
    with connect(server) as wire:
        assert push(server, wire, device, apns_topic=APPS[0]) == (400, "TopicDisallowed"), "the app of another team"
    assert server.stop() == 0
    assert answers(start("--topics", "known", certs=tmp_path / "certs")) == expected, "also after a new start"


def test_an_app_of_later_needs_a_new_connection(start, device):
    """The first push of a connection fixes the bundle ids of the team (documented)."""
    server = start("--topics", "known")
    server.api("PUT", "/fixtures", {"apps": [{"bundle_id": "com.acme.first", "team_id": server.team_id}]})

    def answer(wire, topic):
        response = wire.push(push_headers(server, device, apns_topic=topic))
        return response.status, json.loads(response.body or b"{}").get("reason")

    with connect(server) as wire:
        assert answer(wire, "com.acme.first") == (200, None)
        server.api("PUT", "/fixtures", {"apps": [{"bundle_id": "com.acme.later", "team_id": server.team_id}]})
        assert answer(wire, "com.acme.later") == (400, "TopicDisallowed")
        assert "open a new connection" in server.pushes()[-1]["verdict"]["checks"][-1]["detail"]
        assert answer(wire, "com.acme.first") == (200, None)
        with connect(server) as other:
            assert answer(other, "com.acme.later") == (200, None)


def test_team_topics_do_not_restrict_a_key(start, tmp_path, device):
    """Without `--topics known` they change nothing, unlike the topics of a topic-specific key."""
    server = start(certs=tmp_path / "certs")
    for key_id, flag, expected in (
        (OWN, "--team-topics", (200, "")), (OTHER, "--topic", (400, "TopicDisallowed")),
    ):
        path, pem = private_key(tmp_path, key_id)
        added = server.command("key", "add", path, "--team-id", ACME, flag, APPS[0], "--certs", server.certs)
        assert added.returncode == 0, added.stderr
        with connect(server) as wire:
            assert push(server, wire, device, pem, key_id, ACME, apns_topic=APPS[0]) == (200, "")
            assert push(server, wire, device, pem, key_id, ACME, apns_topic=APPS[1]) == expected
    listed = server.command("key", "ls", "--json", "--certs", server.certs).stdout.splitlines()
    assert {one["key_id"]: (one["topics"], one["team_topics"]) for one in map(json.loads, listed)} == {
        server.key_id: (None, None), OWN: (None, APPS[:1]), OTHER: (APPS[:1], None)}


@pytest.mark.parametrize(("flags", "words"), [
    (["--team-topics", "com.acme.app,,com.acme.other"], ["--team-topics must have 1 to 255 characters", 'not ""']),
    (["--team-topics", "com.acme app"], ["without spaces", '"com.acme app"']),
    (["--team-topic", "com.acme.app"], ["Did you mean '--team-topics'?"]),
    (["--team-topics", "com.acme.app", "--topic", "com.acme.app"], ["--topic and --team-topics exclude each other"]),
])
def test_wrong_team_topics_add_no_key(start, tmp_path, flags, words):
    server = start(certs=tmp_path / "certs")
    path, _ = private_key(tmp_path, OWN)
    done = server.command("key", "add", path, "--team-id", ACME, *flags, "--certs", server.certs)
    assert (done.returncode, done.stdout) == (2, "")
    for word in words:
        assert word in done.stderr
    assert [key["key_id"] for key in server.api("GET", "/keys")["items"]] == [server.key_id]
    assert OWN not in (server.certs / "provider.yaml").read_text()


def test_a_misspelt_value_of_topics_prevents_the_start(binary, certs):
    done = run(
        binary, "serve", "--apns", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--certs", certs, "--topics", "knwon")
    assert done.returncode == 2 and '--topics: "knwon" is invalid: expected any or known' in done.stderr
