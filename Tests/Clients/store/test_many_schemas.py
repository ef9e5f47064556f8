"""`apns-mock view 'postgres://…?schema=load_*'`: one read-only inbox over servers that share nothing but the database."""

import json
import secrets
import time

import pytest

from cli.test_view import Viewer
from support.many_schemas import push, servers, stored, viewing


@pytest.fixture(scope="module")
def prefix():
    return f"load{secrets.token_hex(4)}"


@pytest.fixture(scope="module")
def filled(binary, certs, postgres, prefix, tmp_path_factory):
    """Three servers, a view of them, and the device tokens in the order in which they were pushed to."""
    names = [f"{prefix}_{number}" for number in (1, 2, 3)]
    with servers(binary, certs, postgres, names) as started:
        order = []
        # Not in turn, so that the numbers of the servers differ.
        for index in [0, 0, 1, 2, 0, 1, 1, 1, 2, 0, 0, 0, 0, 2, 1]:
            device = secrets.token_hex(32)
            name = names[index]
            assert push(started[name], device, body=json.dumps({"aps": {"alert": f"From {name}"}}).encode()).status == 200
            order.append((name, device))
            time.sleep(0.003)
        with viewing(binary, tmp_path_factory.mktemp("view"), postgres, f"{prefix}_*") as viewer:
            stored(viewer, len(order))
            yield started, viewer, order


def test_pushes_are_in_the_order_of_arrival(filled):
    _, viewer, order = filled
    records = viewer.api("GET", "/pushes", limit=1000)
    assert [(one["server"], one["request"]["device_token"]) for one in records["items"]] == order
    assert records["matched"] == records["total"] == len(order) and records["complete"]
    names = [one["seq"] for one in records["items"]]
    assert names == [f"{one['server']}:{one['server_seq']}" for one in records["items"]] and len(set(names)) == len(names)
    newest = viewer.api("GET", "/pushes", limit=4, order="desc")["items"]
    assert [one["request"]["device_token"] for one in newest] == [device for _, device in order[:-5:-1]]


def test_each_server_numbers_its_pushes(filled):
    started, viewer, order = filled
    for record in viewer.pushes(limit=1000):
        assert record["server_seq"] == started[record["server"]].record(record["request"]["device_token"])["seq"]
        name = f"{record['server']}:{record['server_seq']}"
        assert viewer.api("GET", f"/pushes/{name}") == viewer.api("GET", f"/pushes/{record['seq']}") == record
        assert viewer.api("GET", f"/pushes/{record['apns']['id']}")["server_seq"] == record["server_seq"]
    for unknown in (f"{order[0][0]}:99999", "other:1", f"{order[0][0]}:", f"{order[0][0]}:1:2", ":1", f"{order[0][0]}:0", "1"):
        assert viewer.request("GET", f"/api/v1/pushes/{unknown}").status == 404


def test_pages_have_each_push_once(filled):
    _, viewer, order = filled
    for direction, cursor in (("asc", "after"), ("desc", "before")):
        found, query = [], {}
        while True:
            page = viewer.api("GET", "/pushes", limit=2, order=direction, fields="seq,request.device_token", **query)
            found += [one["request"]["device_token"] for one in page["items"]]
            if page["next"] is None:
                break
            query = {cursor: page["next"]}
        assert found == [device for _, device in order][::1 if direction == "asc" else -1]


def test_a_push_is_a_cursor(filled):
    _, viewer, order = filled
    names = [one["seq"] for one in viewer.pushes(limit=1000)]
    for index, name in enumerate(names):
        assert [one["seq"] for one in viewer.pushes(limit=1000, after=name)] == names[index + 1:]
        assert [one["seq"] for one in viewer.pushes(limit=1000, before=name)] == names[:index]
    assert [one["seq"] for one in viewer.pushes(limit=1000, q=f"after:{names[3]} before:{names[7]}")] == names[4:7]
    assert len(viewer.pushes(limit=1000, after=0)) == len(names)
    page = viewer.api("GET", "/pushes", limit=2, within="5s")
    assert page["next"] == names[1] and "last_seq" not in page
    # A number would be one of the view's own, which nobody knows.
    for query in ("after=3", "before=3", "seqs=3", "after=-1", "after=other:3", "before=load_1", f"after={order[0][0]}:99999", "seqs=1-3"):
        refused = viewer.request("GET", f"/api/v1/pushes?{query}")
        assert refused.status == 400 and "load_1:4711" in refused.json["hint"], (query, refused.body)


def test_a_verification_begins_after_a_push(filled):
    _, viewer, order = filled
    names = [one["seq"] for one in viewer.pushes(limit=1000)]
    for after, count in [(0, len(names)), (names[3], len(names) - 4), (names[-1], 0)]:
        body = {"after": after, "expect": [{"match": {}, "count": count}], "no_others": True}
        assert viewer.request("POST", "/api/v1/verify", body).json["passed"], after
    for after in (3, "3", -1, "other:3", "load_1", f"{order[0][0]}:99999", [names[3]], {}, True):
        refused = viewer.request("POST", "/api/v1/verify", {"after": after, "no_others": True})
        assert refused.status == 400 and b"load_1:4711" in refused.body and b"/after" in refused.body, (after, refused.body)


def test_a_wait_goes_on_after_a_push(filled):
    _, viewer, order = filled
    names = [one["seq"] for one in viewer.pushes(limit=1000)]
    result = viewer.api("GET", "/pushes/wait", count=3, after=names[-4], timeout="5s")
    assert result["satisfied"] and [one["seq"] for one in result["items"]] == names[-3:] and result["seq"] == names[-1]
    assert not viewer.api("GET", "/pushes/wait", after=result["seq"], timeout="300ms")["satisfied"]
    done = viewer.command("wait", "--after", names[-2], "--timeout", "5s")
    assert done.returncode == 0 and names[-1] in done.stdout, done
    done = viewer.command("ls", "--after", names[-3])
    assert done.returncode == 0 and names[-2] in done.stdout and names[-3] not in done.stdout, done


def test_no_number_of_the_view_is_shown(filled):
    """In what the API answers, each `seq` is that of a server, or names the server."""
    _, viewer, order = filled
    known = {one["seq"] for one in viewer.pushes(limit=1000)}

    def check(value, path):
        if isinstance(value, dict):
            for name, member in value.items():
                if name in ("seq", "next", "last_seq", "first_seq", "by"):
                    assert member is None or member in known, (path, name, member)
                if name in ("seqs", "evidence", "attempts"):
                    assert all(one in known for one in member), (path, name, member)
                check(member, f"{path}.{name}")
        elif isinstance(value, list):
            for one in value:
                check(one, path)

    device = order[0][1]
    name = viewer.pushes(device_token=device)[0]["seq"]
    for path in ("pushes?limit=3", "pushes?limit=3&order=desc", "pushes/seqs?sort=size", f"pushes/{name}", f"pushes/{name}/explain",
                 "pushes/wait?count=100&timeout=0s", "findings", "status", "stats"):
        check(viewer.request("GET", f"/api/v1/{path}").json, path)
    body = {"expect": [{"match": f"device_token:{device}", "count": 2}], "no_others": True}
    report = viewer.request("POST", "/api/v1/verify", body).json
    check(report, "verify")
    assert report["expectations"][0]["seqs"] == [name] and f"seq {order[-1][0]}:" in report["text"]


def test_queries_find_pushes_of_all_servers(filled):
    _, viewer, order = filled
    name, device = order[4]
    assert [one["server"] for one in viewer.pushes(device_token=device)] == [name]
    found = viewer.pushes(search=f'"from {name}"', limit=1000)
    assert {one["server"] for one in found} == {name} and len(found) == sum(one == name for one, _ in order)
    assert viewer.api("GET", "/pushes", status="200", limit=0)["matched"] == len(order)
    assert viewer.pushes(status="410") == []
    chosen = [one["seq"] for one in viewer.pushes(limit=1000)][3:6]
    assert [one["seq"] for one in viewer.pushes(seqs=",".join(reversed(chosen)))] == chosen
    order_of = viewer.api("GET", "/pushes/seqs", sort="device_token")["seqs"]
    tokens = {one["seq"]: one["request"]["device_token"] for one in viewer.pushes(limit=1000)}
    assert [tokens[seq] for seq in order_of] == sorted(tokens.values())


def test_statistics_and_counts_are_added_up(filled):
    started, viewer, order = filled
    total = sum(server.api("GET", "/status")["inbox"]["records"] for server in started.values())
    status = viewer.api("GET", "/status")
    assert status["inbox"]["records"] == total == len(order) and status["servers"] == sorted(started)
    statistics = viewer.api("GET", "/stats")
    assert statistics["status"]["counts"] == {"200": total}


def test_the_export_has_all_pushes_and_their_servers(filled, binary, tmp_path):
    _, viewer, order = filled
    lines = viewer.request("GET", "/api/v1/export").body.decode().splitlines()
    assert [(json.loads(line)["server"], json.loads(line)["request"]["device_token"]) for line in lines] == order
    (tmp_path / "all.ndjson").write_text("\n".join(lines))
    again = Viewer(binary, tmp_path, tmp_path / "all.ndjson")
    try:
        assert [one["request"]["device_token"] for one in again.pushes(limit=1000)] == [device for _, device in order]
    finally:
        again.kill()


def test_commands_show_the_server_of_a_push(filled):
    _, viewer, order = filled
    done = viewer.command("ls")
    assert done.returncode == 0 and f"{order[0][0]}:1" in done.stdout, done
    done = viewer.command("get", f"{order[0][0]}:1")
    assert done.returncode == 0 and order[0][1] in done.stdout, done


def test_a_view_is_read_only(filled):
    _, viewer, _ = filled
    refused = viewer.request("DELETE", "/api/v1/pushes", all="true")
    assert refused.status == 403 and "read only" in refused.json["detail"], refused.body


def test_one_schema_keeps_its_numbers(filled, binary, postgres, tmp_path):
    started, _, order = filled
    name = order[0][0]
    with viewing(binary, tmp_path / "view", postgres, name) as viewer:
        records = viewer.pushes(limit=1000)
        assert [one["seq"] for one in records] == [one["seq"] for one in started[name].pushes(limit=1000)]
        assert "server" not in records[0]
