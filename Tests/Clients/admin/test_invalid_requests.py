"""Invalid requests to the admin API. Each is rejected with a problem document that says what is wrong and how to
correct it, and changes nothing.
"""

import jsonschema
import pytest

from support.server import Server, stop_cleanly
from support.tokens import foreign_key, public_half
from support.wire import connect, push_headers

API = "/api/v1"
MEBIBYTE = 1 << 20
NESTED = "[" * 100_000
PUBLIC_KEY = public_half(foreign_key())
YAML = "application/yaml"


def each(method, path, *cases):
    """Returns rows for one endpoint; a case is (body, status, detail, hint)."""
    return [(method, API + path, *case) for case in cases]


def queries(method, path, *cases):
    """Returns rows for one endpoint; a case is (query, detail, hint)."""
    return [(method, f"{API}{path}?{query}", None, 400, detail, hint) for query, detail, hint in cases]


CLOCK = [
    *each("PUT", "/clock", (
        "{}", 400, "lacks mode", "frozen"), (
        '{"mode":"frozn"}', 400, "mode cannot be", "Did you mean frozen?"), (
        '{"mode":"real","now":"2026-01-31T12:00:00Z"}', 400, "mode frozen", "/clock/advance"), (
        '{"mode":"frozen","now":"noon"}', 400, "now cannot be", "RFC 3339"), (
        '{"mode":"frozen","now":5}', 400, "now must be a string", "omit it"), (
        '{"mdoe":"frozen"}', 400, '"mdoe"', "Did you mean mode?")),
    *each("POST", "/clock/advance", (
        "{}", 400, "lacks by", "20m"), (
        '{"by":"soon"}', 400, 'by cannot be "soon"', "20m"), (
        '{"by":3600}', 400, "by must be a string", "omit it")),
]

JSON_BODIES = each("POST", "/clock/advance", (
    "[]", 400, "no object", ""), (
    "3", 400, "no object", ""), (
    "null", 400, "no object", ""), (
    "{", 400, "no member name in quotes at byte 1", ""), (
    '{"by":"1h",}', 400, "at byte 11", ""), (
    "hello", 400, "no JSON value at byte 0", ""), (
    '{"b\0":1}', 400, "at byte", ""), (
    b"\xff", 400, "", ""), (
    NESTED, 400, "nested deeper", ""), (
    '{"by":' + NESTED, 400, "nested deeper", ""), (
    '{"a":1,"b":2}', 400, '"a"', ""), (
    " " * (MEBIBYTE + 1), 413, "", ""))

CONNECTIONS = [
    *queries("GET", "/connections", ("state=opne", "", "open or closed"), ("stat=open", "", "state")),
    *each("GET", "/connections/c9", (None, 404, "", "Open are c1.")),
    *each("GET", "/connections/1", (None, 404, "", "Open are c1.")),
    *(row for command in ("goaway", "reset", "close") for row in each("POST", f"/connections/{command}", (
        "{}", 400, "specifies no connections", '{"all": true}'), (
        "", 400, "specifies no connections", '{"all": true}'), (
        '{"all":false}', 400, "specifies no connections", '{"all": true}'), (
        '{"all":"yes"}', 400, "all", ""), (
        '{"all":true,"listener":0}', 400, "excludes", "Omit all"), (
        '{"all":true,"connection":"c1"}', 400, "excludes", "Omit all"), (
        '{"connection":[]}', 400, "empty list", "c17"), (
        '{"connection":17}', 400, "connection must be", "omit it"), (
        '{"connection":"c9"}', 404, "not open: c9", "Open are c1."), (
        '{"connection":["c0","c00"]}', 404, "not open", "Open are c1."), (
        '{"listener":1}', 400, "listener must be", "from 0 to 0"), (
        '{"listener":-1}', 400, "listener must be", "from 0 to 0"), (
        '{"conection":"c1"}', 400, '"conection"', "Did you mean connection?"))),
    *each("POST", "/connections/reset", ('{"all":true,"code":"CANCEL"}', 400, '"code"', "The members are all")),
    *each("POST", "/connections/goaway", (
        '{"all":true,"code":"NO_EROR"}', 400, "code: ", "NO_ERROR"), (
        '{"all":true,"code":-1}', 400, "code", ""), (
        '{"all":true,"last_stream":"none"}', 400, "last_stream: ", ""), (
        '{"all":true,"close_after":"soon"}', 400, "close_after: ", ""), (
        '{"all":true,"twice":"maybe"}', 400, "twice: ", ""), (
        '{"all":true,"debug":"%s"}' % ("x" * 20_000), 400, "debug", ""), (
        '{"all":true,"debg":""}', 400, '"debg"', "Did you mean debug?")),
]

DEVICES = [
    *each("PUT", "/devices/xyz", ("{}", 400, "is not a device token", "")),
    *each("PUT", "/devices/abc", ("{}", 400, "is not a device token", "")),
    *each("PUT", "/devices/" + "a" * 402, ("{}", 400, "is not a device token", "")),
    *each("POST", "/devices", ("{}", 400, "lacks token", ""), ('{"token":"zz"}', 400, "is not a device token", "")),
    *each("PUT", "/devices/ab12", (
        '{"token":"ab13"}', 400, "another device token", ""), (
        '{"state":"offline"}', 400, 'state cannot be "offline"', ""), (
        '{"environment":"prod"}', 400, 'environment cannot be "prod"', ""), (
        '{"topic":""}', 400, "topic is empty", ""), (
        '{"topic":["a"]}', 400, "topic must be a string", ""), (
        '{"since":"yesterday"}', 400, "since cannot be", ""), (
        '{"sate":"online"}', 400, '"sate"', ""), (
        "[]", 400, "no object", ""), (
        '"x"', 400, "no object", "")),
    *each("GET", "/devices/ab12", (None, 404, "", "online for all topics")),
    *each("DELETE", "/devices/ab12", (None, 404, "", "")),
    *each("GET", "/devices/anna", (None, 404, "there is no device anna", "")),
    *each("DELETE", "/devices/anna", (None, 404, "there is no device anna", "")),
    *each("POST", "/devices/anna/online", ("", 404, "there is no device anna", ""), ('{"a":1}', 400, '"a"', "no body")),
    *each("POST", "/devices/anna/onlin", ("", 404, '"onlin"', "Did you mean online?")),
    *each("POST", "/devices/anna/disable", (
        "{}", 400, "lacks bundle_id", ""), (
        '{"bundle_id":"com.x"}', 404, "there is no device anna", ""), (
        '{"bundle_id":"com.x.voip"}', 400, "ends in .voip", "Write com.x;"), (
        '{"bundle_id":"com x"}', 400, "is not a bundle id", ""), (
        '{"bundle_id":"com.x","environment":"prod"}', 400, 'environment cannot be "prod"', "")),
    *each("POST", "/devices/beef/install", ('{"bundle_id":"com.x"}', 400, "not the id of a device", "")),
    *each("POST", "/devices/anna/install", (
        '{"bundle_id":"com.x","push_types":["alrt"]}', 400, '"alrt"', "Did you mean alert?"), (
        '{"bundle_id":"com.x","push_types":5}', 400, "push_types must be", "")),
    *each("POST", "/devices/anna/reinstall", (
        '{"bundle_id":"com.x","push_type":"alert"}', 400, '"push_type"', "Did you mean push_types?")),
    *each("POST", "/devices/anna/end-activity", (
        "", 400, "is not a device token", ""), ('{"token":"ab12"}', 404, "is not one of anna", "")),
    *each("POST", "/devices/ab12/end-activity", ("", 404, "not registered", "")),
    *each("GET", "/devices/anna/notifications", (None, 404, "there is no device anna", "")),
    *each("GET", "/devices/anna/notifications/stream", (None, 404, "there is no device anna", "")),
    *each("GET", "/devices/anna/subscriptions", (None, 404, "there is no device anna", "")),
    *each("POST", "/devices/anna/subscriptions", (
        "{}", 400, "lacks channel", ""), ('{"channel":"AAAA"}', 404, "there is no device anna", "")),
    *each("DELETE", "/devices/anna/subscriptions", (None, 400, "parameter channel", "")),
    *each("GET", "/pushes/7/delivery", (None, 404, "there is no push with seq 7", "")),
    *queries("GET", "/deliveries", (
        "apns_id=a&apns_unique_id=b", "must have one of", ""), ("apns_uniqe_id=a", "", "Did you mean apns_unique_id?"),
        ("", "must have one of", "")),
    *each("PUT", "/fixtures", (
        "", 400, "the body is empty", ""), (
        "[]", 422, "expected a map", ""), (
        '{"devises":[]}', 422, 'devises: unknown', 'Did you mean "devices"?'), (
        '{"devices":[{"id":"beef"}]}', 422, "is not the id of a device", ""), (
        b'{"devices":[{"id":"\xff"}]}', 422, "not UTF-8", "")),
]

FAULTS = [
    *each("POST", "/faults/halt", ('{"all":true}', 400, '"all"', "Send {} or no body.")),
    *each("POST", "/faults/resume", ('{"all":true}', 400, '"all"', "Send {} or no body.")),
    *each("POST", "/profiles/reload", ('{"folder":"/etc"}', 400, "", "Send {} or no body.")),
]

KEYS = [
    *each("PUT", "/keys/short", ('{"team_id":"ACMETEAM01","public_key":"x"}', 400, 'key_id "short"', "")),
    *each("PUT", "/keys/ACMEKEY001", (
        "{}", 400, "lacks team_id", ""), (
        '{"team_id":"ACMETEAM01"}', 400, "lacks public_key", ""), (
        '{"team_id":"ACMETEAM01","public_key":"hello"}', 400, "public_key is invalid", ""), (
        '{"team_id":"short","public_key":"x"}', 400, 'team_id "short"', ""), (
        '{"key_id":"ACMEKEY002"}', 400, "another key than the path", ""), (
        '{"team":"ACMETEAM01"}', 400, '"team"', ""), *(
        ({"team_id": "ACMETEAM01", "public_key": PUBLIC_KEY, **members}, 400, detail, "") for members, detail in [
            ({"topics": "com.acme"}, "topics must be a list of strings"),
            ({"topics": [1]}, "topics must be a list of strings"),
            ({"environment": "moon"}, "environment cannot be"), ({"related_key_id": "x"}, 'related_key_id "x"'),
            ({"public_key": None}, "lacks public_key"), ({"colour": "blue"}, '"colour"')])),
    *each("DELETE", "/keys/ACMEKEY001", (None, 404, "", "MOCKKEY001")),
]

LISTS = [
    *(row for path in ("/devices", "/keys", "/profiles") for row in queries(
        "GET", path, *((query, "", "") for query in (
            "limit=0", "limit=1001", "limit=x", "limit=", "limit=1&limit=2", "topic=a")),
        ("limt=3", "", "Did you mean limit?"))),
    *queries("GET", "/profiles", ("after=nosuch", "nosuch", "")),
    *queries("GET", "/devices", ("after=nosuch", "nosuch", "next"), ("search=a&after=nosuch", "nosuch", "next"), ("search=" + "a" * 256, "search has 256 bytes", "255"),
             ("tokens=xyz", "is not a device token", "hexadecimal"), ("tokens=" + "ab," * 101, "tokens has 101", "100"), ("saerch=a", "", "Did you mean search?")),
    *(row for path in ("/stats", "/findings") for row in queries(
        "GET", path, *((query, "buckets", "from 1 to 500") for query in ("buckets=0", "buckets=501", "buckets=x")), ("buckets=1&buckets=2", "buckets 2 times", ""))),
    *each("POST", "/faults/preview", ("", 400, "the body is empty", ""), ("[", 400, "", "")),
]

PROFILE = [
    *each("PUT", "/profile", (
        "{}", 400, "lacks name", "flaky-503"), (
        '{"name":5}', 400, "must be a string", "string"), (
        '{"name":"flaky-504"}', 422, '"flaky-504"', "Did you mean flaky-503?"), (
        '{"name":"unlike-any-other"}', 422, '"unlike-any-other"', "The profiles are healthy, flaky-503"), (
        '{"name":"flaky-503?rte=1"}', 422, "params.rte", 'Did you mean "rate"?'), (
        '{"name":"flaky-503","params":{"speed":1}}', 422, "params.speed", "The parameters are rate, streak"), (
        '{"name":"flaky-503","params":{"rate":20}}', 422, "20 is not a number in 0..1", "See problems"), (
        '{"name":"flaky-503","params":{"streak":1.5}}', 422, "1.5 is not a whole number", "See problems"), (
        '{"name":"flaky-503","params":{"rate":{}}}', 400, "params.rate", "a number, a string"), (
        '{"name":"flaky-503?rate"}', 400, "name cannot be", "?rate=0.5"), (
        '{"name":"./mine.yaml"}', 400, "the path of a file", "PUT /api/v1/profiles/NAME"), (
        '{"name":"flaky-503","seed":"7"}', 400, "seed must be a whole number", "omit it"), (
        '{"name":"flaky-503","ttl":"5"}', 400, 'ttl cannot be "5"', "500ms"), (
        '{"name":"flaky-503","ttl":"0s"}', 400, "ttl cannot be", "longer than zero"), (
        '{"name":"flaky-503","parms":{}}', 400, '"parms"', "Did you mean params?"), (
        '{"profile":"flaky-503"}', 400, '"profile"', "Did you mean name?"), (
        '{"name":"flaky-503","parameters":{}}', 400, '"parameters"', "Did you mean params?")),
    *each("PATCH", "/profile/params", (
        "{}", 400, "", '{"rate": 0.4}'), (
        "[]", 400, "", "object"), (
        '{"rte":0.4}', 422, "", 'Did you mean "rate"?'), (
        '{"rte":null}', 422, "", 'Did you mean "rate"?'), (
        '{"rate":2}', 422, "", "See problems"), (
        '{"rate":0.4,"streak":0}', 422, "", "See problems"), (
        '{"rate":[0.4]}', 400, "", "a number, a string")),
]

PROFILES = [
    *each("PUT", "/profiles/mine", (
        "{", 400, "", "object"), (
        '{"source":5}', 400, "", "a string"), (
        '{"source":"rules: []","name":"mine"}', 400, "", "source"), (
        '{"nmae":"mine"}', 422, "", 'Did you mean "name"?')),
    *each("GET", "/profiles/flaky-504", (None, 404, "", "Did you mean flaky-503?")),
    *each("GET", "/profiles/..%2F..%2Fetc", (None, 404, "", "healthy, flaky-503")),
    *each("DELETE", "/profiles/flaky-504", (None, 404, "", 'Did you mean "flaky-503"?')),
    *each("DELETE", "/profiles/healthy", (None, 409, "built-in", "")),
    *each("POST", "/profiles/simulate", (
        "{}", 400, "", "name is a profile of the library"), (
        '{"name":"healthy","source":"a: b"}', 400, "", "name is a profile"), (
        '{"name":"flaky"}', 422, "", "Did you mean flaky-503?"), (
        '{"name":"/etc/passwd"}', 400, "", "PUT"), (
        '{"name":"flaky-503","params":{"rte":1}}', 422, "", 'Did you mean "rate"?'), (
        '{"name":"flaky-503","params":{"rate":[1]}}', 400, "", "a number, a string"), (
        '{"name":"flaky-503","params":[]}', 400, "", "an object"), (
        '{"name":"healthy","pushes":0}', 400, "", "1 to 100000"), (
        '{"name":"healthy","pushes":1000000000}', 400, "", "1 to 100000"), (
        '{"name":"healthy","seed":-1}', 400, "", "from 0"), (
        '{"name":"healthy","seed":1.5}', 400, "", "whole number"), (
        '{"source":"rules: 5"}', 422, "", "See problems"), (
        '{"nam":"healthy"}', 400, "", "Did you mean name?")),
]

PUSHES = [
    *(row for method in ("GET", "DELETE") for row in queries(method, "/pushes", (
        "topik=x", "topik", "did you mean topic?"), (
        "status=abc", "status", "whole number"), (
        "topic=%zz", "percent-encoded", "%25"), (
        "topic=%ff", "percent-encoded", "%25"), (
        "topic=%4", "percent-encoded", "%25"), (
        "since=now", "since", "RFC 3339"), (
        "topic", "topic", "Specify a value"), (
        "accepted=perhaps", "accepted", ""), (
        "outcome=fine", "outcome", ""), (
        "after=-1", "after", ""), (
        "q=%22", "", ""))),
    *queries("GET", "/pushes", (
        "limit=5000", "limit", "from 0 to 1000"), ("limit=x", "limit", ""), ("limt=3", "limt", "did you mean limit?"), (
        "devicetoken=x", "devicetoken", "device_token"), ("colour=blue", "colour", "push_type")),
    *queries("DELETE", "/pushes", (
        "", "no pushes to delete", "all=true"), (
        "all=false", "all cannot be", "omitted"), (
        "all=", "all cannot be", "true"), (
        "all=true&topic=a", "excludes a filter", "Omit all=true"), (
        "all=true&all=true", "2 times", "once"), (
        "topic=a&limit=1", 'unknown field "limit"', "The fields are"), (
        "order=asc", 'unknown field "order"', "before"), (
        "al=true", 'unknown field "al"', "The fields are")),
    *queries("GET", "/stats", ("limit=3", "", "")),
    *queries("GET", "/pushes/wait", *((query, detail, "") for query, detail in [
        ("count=x", "count"), ("timeout=1h", "timeout"), ("settle=x", "settle"), ("strict=maybe", "strict"),
        ("strict=1&strict=1", "strict"), ("topik=a", "topik"), ("settle=2s&timeout=1s", "settle"), ("limit=3", "limit")])),
    *queries("GET", "/events", *((query, "", "") for query in (
        "last_event_id=x", "last_event_id=-1", "topik=a", "limit=1"))),
    *queries("GET", "/export", (
        "format=xml", "", "ndjson"), ("format=", "", "ndjson"), ("topik=a", "", "topic"), ("limit=3", "", "fields")),
    *(("GET", f"{API}/pushes/{number}{part}", None, 404, "", "The inbox has 1 push, ")
      for part in ("", "/payload", "/curl", "/apns") for number in (
          "2", "0", "99999999999999999999999", "nosuchid", "27cfdc15-e305-27e0-e290-8fc98e115899", "..%2f..", "-1")),
]

RESET = each("POST", "/reset", *((body, 400, "inb", "") for body in (
    '{"inbx":true}', '{"inbox":"yes"}', '{"inbox":1}', '{"keep":["inbx"]}', '{"keep":"inbx"}')))

RULES = [row for method, path in (("POST", "/rules"), ("PUT", "/rules/mine")) for row in each(method, path, (
    '{"do":{"respond":{"status":503}},"trigger":{"probabilty":1}}', 422, "trigger.probabilty", '"probability"'), (
    '{"do":{"respond":{"status":503}},"ttl":"5"}', 422, "ttl", ""), (
    '{"do":{"respond":{"status":503}},"ttl":"-5s"}', 422, "ttl", ""), (
    '{"do":{"respond":{"status":299}}}', 422, "do.respond", ""), (
    '{"do":{"nothing":{}}}', 422, "nothing", ""), (
    "{}", 422, "do is missing", ""), (
    '{"at":"tls","when":{"topic":"a"},"do":{"alert":{}}}', 422, "when.topic", ""), (
    '{"name":"magic-4100","do":{"close":{}}}', 422, "magic-", ""), (
    '{"name":"My Rule","do":{"close":{}}}', 422, "name", ""), (
    '{"do":{"close":{}},"trigger":{"first":"${n}"}}', 422, "trigger.first", ""), (
    "[]", 400, "no object", "object"), (
    "{", 400, "not JSON", "object"))]

SEND = each("POST", "/send", *((body, 400, detail, "") for body, detail in [
    ("{}", "lacks token"), ('{"token":"a b"}', "token has spaces"), ('{"token":5}', "token must be a string"),
    ('{"tokn":"ab"}', "tokn"), ('{"device_token":"ab"}', "device_token"), ('{"token":"ab","headers":[]}', "headers must be an object"),
    ('{"token":"ab","headers":{"a":{}}}', "headers.a"), ('{"token":"ab","headers":{":path":"/"}}', "headers.:path"),
    (r'{"token":"ab","headers":{"a":"b\r\nc: d"}}', "headers.a"), (r'{"token":"ab\r\n"}', "token has"), ("[", "not JSON")]))

VERIFY = each("POST", "/verify", (
    "{}", 400, "there are no expectations", ""), (
    "", 400, "there are no expectations", ""), (
    "[]", 400, "expected a map, not a list", ""), (
    "{", 400, "not JSON", ""))

CHECK = each("POST", "/check", (
    "{}", 400, "nothing is to be checked", "fail_on_rejected"), (
    '{"fail_on_findings":false,"fail_on_rejected":false}', 400, "nothing is to be checked", ""), (
    '{"fail_on_findings":"hot-retry"}', 400, "fail_on_findings must be a list of strings", ""), (
    '{"fail_on_findings":[1]}', 400, "fail_on_findings must be a list of strings", ""), (
    '{"fail_on_findings":["hot-retri"]}', 400, 'fail_on_findings cannot have "hot-retri"', "Did you mean hot-retry?"), (
    '{"fail_on_rejected":1}', 400, "fail_on_rejected must be true or false", ""), (
    '{"fail_on_rejected":true,"scope":"topik:a"}', 400, "topik", "topic"), (
    '{"fail_on_finding":true}', 400, "fail_on_finding", "fail_on_findings"), (
    "[]", 400, "no object", ""))

REPORT = queries("GET", "/report", ("topik=a", "topik", "did you mean topic?"), ("scope=topik:a", "topik", "topic"))

ROWS = [*CHECK, *CLOCK, *JSON_BODIES, *CONNECTIONS, *DEVICES, *FAULTS, *KEYS, *LISTS, *PROFILE, *PROFILES, *PUSHES, *REPORT, *RESET, *RULES,
        *SEND, *VERIFY]


@pytest.fixture(scope="module")
def mock(binary, certs):
    """A server with one push, one open connection and an active profile, which every test must leave as they are."""
    running = Server(binary, certs)
    running.api("PUT", "/profile", {"name": "flaky-503?rate=0"})
    with connect(running) as wire:
        assert wire.push(push_headers(running, "ab" * 32)).status == 200
        yield running
        wire.ping()
    stop_cleanly(running)


@pytest.fixture(scope="module")
def problem(mock):
    """Validates problem documents against their schema in the API description."""
    components = mock.request("GET", "/openapi.json").json["components"]
    return jsonschema.Draft202012Validator({"$ref": "#/components/schemas/Problem", "components": components})


def state(server):
    return [
        server.api("GET", "/clock")["mode"], server.api("GET", "/pushes")["total"], server.api("GET", "/connections")["open"],
        *(server.api("GET", path) for path in ("/devices", "/keys", "/profile", "/rules"))]


@pytest.fixture(scope="module")
def states(mock):
    """The states of the server that were compared so far. The last is compared again after all tests, and the profiles are."""
    seen, profiles = [state(mock)], mock.api("GET", "/profiles")
    yield seen
    assert (state(mock), mock.api("GET", "/profiles")) == (seen[-1], profiles)


@pytest.fixture
def unchanged(request, mock, states):
    """Compares the server's state after a request that could change it."""
    yield
    if not hasattr(request.node, "callspec") or request.node.callspec.params["method"] != "GET":
        states.append(state(mock))
        assert states[-1] == states[-2]


def explained(response, problem, status, detail="", hint=""):
    """Asserts that a response is a problem document with this status, and that its texts contain these."""
    assert response.status == status, response.body
    assert response.headers["content-type"] == "application/problem+json"
    problem.validate(response.json)
    assert response.json["status"] == status
    assert detail in response.json["detail"], response.json
    assert response.json["hint"] and hint.lower() in response.json["hint"].lower(), response.json


def name(row):
    method, path, body, *_ = row
    return f"{method} {path.removeprefix(API)[:60]} {str(body or '')[:60]}"


@pytest.mark.parametrize(("method", "path", "body", "status", "detail", "hint"), ROWS, ids=map(name, ROWS))
def test_an_invalid_request_is_explained(mock, unchanged, problem, method, path, body, status, detail, hint):
    response = mock.request(method, path, body.encode() if isinstance(body, str) else body)
    explained(response, problem, status, detail, hint)
    if path.endswith(("/rules", "/rules/mine", "/profile/params")):
        assert (status == 422) == bool(response.json.get("problems"))


@pytest.mark.parametrize(("method", "path", "type", "body", "status", "text"), [
    ("PUT", "/profiles/mine", "text/plain", "rules: []", 415, YAML),
    ("PUT", "/profiles/mine", YAML, "", 400, YAML),
    ("PUT", "/profiles/mine", YAML, "name: yours", 422, "omit the name"),
    ("PUT", "/profiles/mine", YAML, "extends: [mine]", 422, "See problems."),
    ("PUT", "/profiles/Mine", YAML, "rules: []", 400, "lower-case letters"),
    ("PUT", "/profiles/" + "m" * 65, YAML, "rules: []", 400, "at most 64"),
    ("POST", "/verify", "text/plain", '{"expect": []}', 415, "text/plain"),
    ("POST", "/check", "text/plain", '{"fail_on_rejected": true}', 415, "text/plain"),
    ("POST", "/verify", YAML, '{"expect": []}', 415, "yaml"),
    ("POST", "/reset", "text/plain", "{}", 415, "application/json"),
])
def test_an_invalid_body_of_this_type_is_explained(mock, unchanged, problem, method, path, type, body, status, text):
    response = mock.request(method, API + path, body.encode(), headers={"content-type": type})
    explained(response, problem, status)
    assert text.lower() in (response.json["detail"] + response.json["hint"]).lower(), response.json


@pytest.mark.parametrize(("path", "hint"), [
    ("/api/v1/pushs", "Did you mean /api/v1/pushes?"), ("/api/v1/statuz", "Did you mean /api/v1/status?"),
    ("/api/v1", "/openapi.json"), ("/favicon.ico", "/openapi.json"), ("/api/v1/pushes/1/payload/x", "/api/v1/pushes"),
    ("/api/v1/nothing", ""), ("/nothing", ""), ("/%2e%2e/etc/passwd", "/openapi.json"),
    ("/readyz/x", "Did you mean /readyz?"), ("/page/modules/mian.js", "/page/modules/main.js"),
    ("/page/index.htm", "/page/index.html"), ("/page/../../etc/passwd", "/openapi.json"),
    ("/page/%2e%2e/%2e%2e/etc/passwd", "/openapi.json"), ("/page/a/b/c/d", "/openapi.json"), ("/page/", "/openapi.json"),
    ("/page/..%2fREADME.md", "Open /"),
])
def test_an_unknown_path_gets_a_suggestion(mock, problem, path, hint):
    response = mock.request("GET", path)
    explained(response, problem, 404, hint=hint)
    assert response.json["title"] == "Not Found"
    assert len(response.json["hint"]) < 100, "it does not list every path"


@pytest.mark.parametrize(("method", "path", "allowed"), [
    ("POST", "/api/v1/pushes", "GET, DELETE, HEAD"), ("PATCH", "/api/v1/pushes", "GET, DELETE, HEAD"),
    ("DELETE", "/api/v1/clock", "GET, PUT, HEAD"), ("GET", "/api/v1/reset", "POST"), ("GET", "/api/v1/verify", "POST"),
    ("GET", "/api/v1/check", "POST"), ("POST", "/api/v1/report", "GET, HEAD"),
    ("PATCH", "/api/v1/devices/ab", "GET, PUT, DELETE, HEAD"), ("PURGE", "/livez", "GET, HEAD"),
    ("OPTIONS", "/api/v1/status", "GET, HEAD"), ("PUT", "/api/v1/profiles/lint", "POST"),
    ("GET", "/api/v1/connections/goaway", "POST"), ("POST", "/api/v1/profile/params", "PATCH"),
    ("POST", "/api/v1/profiles/mine", "GET, PUT, DELETE, HEAD"), ("DELETE", "/metrics", "GET, HEAD"),
    ("POST", "/openapi.json", "GET, HEAD"), ("POST", "/", "GET, HEAD"),
])
def test_a_wrong_method_lists_the_allowed_methods(mock, problem, method, path, allowed):
    response = mock.request(method, path)
    explained(response, problem, 405, hint=allowed)
    assert response.headers["allow"] == allowed


def test_a_wrong_head_request_has_no_body(mock):
    response = mock.request("HEAD", "/api/v1/reset")
    assert (response.status, response.headers["allow"], response.body) == (405, "POST", b"")


def test_a_private_key_is_rejected_and_not_stored(mock, unchanged, problem):
    body = {"team_id": "ACMETEAM01", "public_key": foreign_key()}
    response = mock.request("PUT", "/api/v1/keys/ACMEKEY001", body)
    explained(response, problem, 400, "PRIVATE key", "openssl pkey -in AuthKey_ACMEKEY001.p8 -pubout")
    assert "was not stored" in response.json["detail"]
    assert b"BEGIN" not in response.body


def test_a_missing_rule_gets_a_suggestion(start, problem):
    server = start()
    paths = [("GET", "/rules/mien"), ("DELETE", "/rules/mien"), ("GET", "/rules/mien/explain")]
    for method, path in paths:
        explained(server.request(method, API + path), problem, 404, hint="ttl")
    server.api("PUT", "/rules/mine", {"do": {"pass": {}}})
    for method, path in paths:
        explained(server.request(method, API + path), problem, 404, hint="Did you mean mine?")


def test_a_push_that_is_no_simulator_file_is_explained(start, problem):
    """The body of this push is not JSON. It has a server of its own, because it changes the counters of rules."""
    server = start()
    server.api("POST", "/send", {"token": "cd" * 32, "headers": {"apns-topic": "com.example.app"}, "payload": "no JSON"})
    explained(server.request("GET", "/api/v1/pushes/1/apns"), problem, 422,
              "push 1 cannot be represented as a file for xcrun simctl push: the body is not JSON")
