"""Files that another program has edited or damaged: no value, byte or page makes the server crash. It refuses the file with a
sentence that names table, row and repair, or leaves the row out of lists, statistics and findings, which say that they are not
complete, and answers 503 to other requests that need it. It never logs what a row contains.
"""

import contextlib
import http.client
import json
import random
import re
import secrets
import shutil
import sqlite3
import subprocess
import threading
import time

import pytest

from support import stores
from support.failing_stores import push_once, readiness
from support.refusals import USAGE, names_repair
from support.selection import some
from support.server import Server, wait_until

SECRET = "confidential"
LARGEST = (1 << 63) - 1

#: SQL of values that a cell may have: each type, its limits, and what is no UTF-8.
VALUES = {
    "null": "NULL", "empty text": "''", "text": f"'{SECRET}'", "digits": "'12x'", "long text": f"'{SECRET * 100_000}'",
    "empty bytes": "X''", "bytes": "X'00FF00FF0A'", "long bytes": "zeroblob(1000000)", "no UTF-8": "CAST(X'FFFE41' AS TEXT)",
    "zero": "0", "minus one": "-1", "largest": str(LARGEST), "smallest": f"-{LARGEST} - 1", "large": str(1 << 51),
    "fraction": "1.5", "infinity": "9e999", "beyond": "9223372036854775808",
}

#: The columns of each table.
COLUMNS = {
    "push": """seq received_at finished_at arrived_ns kind outcome accepted status reason delivery attempt push_key device_token
        topic push_type priority collapse_id apns_id id_origin rule latency_ns payload_size stream connection token credential
        checks verdict_status failed_check verdict_reason detail unregistered_at findings details headers payload decision ending""".split(),
    "connection": "id name listener environment client sni tls http certificate opened_ns identity".split(),
    "provider_token": "id key_id team_id issued_at signature identity".split(),
    "check_list": ["id", "names"],
    "name": ["name"],
    "block": "first_seq oldest newest device_tokens push_keys apns_ids".split(),
    "state": ["name", "value"],
    "contents": "last_seq reserved_seq emptied_through count bytes evicted last_evicted last_connection".split(),
}

#: Each cell of the oldest and of the newest row with each value. The newest pushes are read at the start.
CELLS = [
    (table, column, value, order)
    for table, columns in COLUMNS.items() for order in (("ASC", "DESC") if table == "push" else ("ASC",))
    for column in columns for value in VALUES
]


@pytest.fixture(scope="session")
def complete(binary, certs, tmp_path_factory):
    """A file with pushes of every kind, of which some are in a block that is complete."""
    folder = tmp_path_factory.mktemp("complete")
    path = folder / "inbox.db"
    for is_first in (True, False):
        server = Server(binary, certs, *stores.flags(path))
        try:
            if is_first:
                push_once(server)
            else:
                stores.push_every_kind(server, folder)
            assert server.stop() == 0
        finally:
            server.kill()
        if is_first:
            edit(path, "UPDATE contents SET last_seq = 4060, reserved_seq = 4060")
    with contextlib.closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT count(*) FROM block").fetchone() == (1,)
        for table, columns in COLUMNS.items():
            assert {row[1] for row in db.execute(f"PRAGMA table_info({table})")} == set(columns), table
            assert db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] > 0, table
    return path


def edit(path, *statements):
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        for statement in statements:
            db.execute(statement)
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def start_or_refusal(binary, certs, path, folder):
    """Starts a server with a file; returns the server, or the sentence with which it has refused the file."""
    try:
        return Server(binary, certs, *stores.flags(path, memory_records=2), directory=folder), None
    except AssertionError as error:
        log = (folder / "log").read_text(errors="replace")
        assert f"ended with {USAGE} " in str(error) and "Fatal" not in log, str(error)[:5000]
        return None, re.search(r"error: .*", log)[0]


#: Requests that read everything, and by each index.
REQUESTS = [
    ("GET", "/pushes?kind=*&limit=1000", None), ("GET", "/pushes?order=desc&limit=20", None),
    ("GET", f"/pushes?device_token={'ab' * 32}", None), ("GET", "/pushes?status=400", None),
    ("GET", "/pushes?reason=BadTopic&count=exact", None), ("GET", "/pushes?since=-1h", None),
    ("GET", "/pushes?q=text:hello", None), ("GET", "/pushes?q=is:duplicate", None), ("GET", "/pushes?rule=rule-1", None),
    ("GET", "/pushes/seqs?sort=latency", None), ("GET", "/pushes/wait?count=1&timeout=0s", None),
    ("GET", "/stats?buckets=10", None), ("GET", "/findings?buckets=10", None), ("GET", "/export", None),
    ("GET", "/export?format=har", None), ("GET", "/export?format=csv", None),
    ("POST", "/verify", {"expect": [{"match": "topic:com.example.app", "count": {"at_least": 1}}]}),
]


def use(server, seq=None):
    """Reads the inbox in all ways and pushes. Returns the explanations of the requests that were refused."""
    requests = REQUESTS + [("GET", f"/pushes/{seq}{part}", None) for part in (
        "", "/payload", "/explain", "/curl", "/delivery") if seq]
    refused = []
    for method, path, body in requests:
        # An export that fails has no end.
        with contextlib.suppress(http.client.IncompleteRead, ConnectionError):
            response = server.request(method, "/api/v1" + path, body)
            assert response.status in (200, 400, 404, 412, 422, 503), (path, response.status, response.body[:500])
            if response.status >= 500:
                refused.append(response.body.decode())
        assert server.process.poll() is None, f"{path}: the server has crashed\n{server.log()[-3000:]}"
    status, _, _ = push_once(server)
    assert status in (200, 503)
    assert server.process.poll() is None, server.log()[-3000:]
    return refused


def check(binary, certs, path, folder, table=None, seq=None):
    """The file is refused with a sentence that names the repair, or all requests are answered."""
    folder.mkdir()
    server, refusal = start_or_refusal(binary, certs, path, folder)
    if refusal:
        assert str(path) in refusal and names_repair(refusal) and SECRET not in refusal, refusal[:1000]
        if table:
            assert f"in the table {table}" in refusal, refusal
        return refusal
    try:
        refused = use(server, seq)
        if table and refused:
            assert any("in the table" in text for text in refused), refused
        assert SECRET not in server.log()
        server.signal()
        assert server.wait() in (0, 1), server.log()[-3000:]
    finally:
        server.kill()
    return None


def store(binary, *arguments):
    """Runs a command of `apns-mock store`; returns its exit code and the members that it prints."""
    done = subprocess.run([binary, "store", *map(str, arguments), "--json"], capture_output=True, text=True, timeout=60)
    assert SECRET not in done.stdout + done.stderr
    return done.returncode, json.loads(done.stdout) if done.stdout else done.stderr


def repair(binary, path, refusal):
    """Runs the command that a refusal names. Returns what it reports."""
    assert f"run apns-mock store repair {path}, which keeps what can be read" in refusal
    code, report = store(binary, "repair", path)
    assert code == 0 and report["former"] == f"{path}.damaged" and report["problem_count"] > 0, report
    sound, again = store(binary, "check", path)
    assert (sound, again["problem_count"], again["readable"]) == (0, 0, report["readable"]), again
    return report


@pytest.mark.parametrize(("table", "column", "value", "order"), some(CELLS, 4), ids=lambda value: str(value))
def test_an_edited_cell(binary, certs, complete, tmp_path, table, column, value, order):
    path = tmp_path / "inbox.db"
    shutil.copy(complete, path)
    with contextlib.closing(sqlite3.connect(path)) as db:
        (row, seq) = db.execute(f"SELECT rowid, rowid FROM {table} ORDER BY rowid {order} LIMIT 1").fetchone() \
            if table not in ("name", "state") else (None, None)
        seq = seq if table == "push" else None
    where = "" if row is None else f" WHERE rowid = {row}"
    try:
        edit(path, f"UPDATE {table} SET {column} = {VALUES[value]}{where}")
    except sqlite3.Error as error:
        pytest.skip(f"SQLite does not store it: {error}")
    check(binary, certs, path, tmp_path / "run", table, seq)


@pytest.mark.parametrize(("table", "column", "value", "order"), some([
    ("contents", "count", "text", "ASC"), ("push", "received_at", "text", "DESC"), ("contents", "last_seq", "null", "ASC"),
    ("push", "push_key", "fraction", "DESC"),
], 2, first=1))
def test_a_file_is_usable_after_the_repair_that_the_refusal_names(
        binary, certs, complete, tmp_path, table, column, value, order):
    path = tmp_path / "inbox.db"
    shutil.copy(complete, path)
    edit(path, f"UPDATE {table} SET {column} = {VALUES[value]} WHERE rowid = (SELECT rowid FROM {table} ORDER BY rowid {order} LIMIT 1)")
    refusal = check(binary, certs, path, tmp_path / "refused", table)
    assert refusal and column in refusal
    repair(binary, path, refusal)
    assert check(binary, certs, path, tmp_path / "repaired") is None
    server = Server(binary, certs, *stores.flags(path))
    try:
        assert len(stores.everything(server)) > 50
    finally:
        server.kill()


@pytest.mark.parametrize("column", some(["outcome", "decision", "headers", "connection", "attempt"], 2))
def test_a_request_that_needs_an_edited_push_names_the_repair(binary, certs, complete, tmp_path, start, column):
    path = tmp_path / "inbox.db"
    shutil.copy(complete, path)
    edit(path, f"UPDATE push SET {column} = X'00' WHERE seq = 4061")
    server = start(*stores.flags(path, memory_records=2))
    response = server.request("GET", "/api/v1/pushes/4061")
    assert response.status == 503, response.body
    assert f"in the table push, row 4061, {column}" in response.json["detail"], response.body
    assert f"apns-mock store repair {path}" in response.json["detail"]
    assert server.api("GET", "/pushes", after=4061, limit=1000)["items"], "the others can be read"
    assert server.logged("cannot be read", "in the table push, row 4061")


def test_a_request_for_an_edited_push_does_not_fail_others(binary, certs, complete, tmp_path, start):
    """Requests at the same time, of which some need the edited push: only these are answered with 503."""
    path = tmp_path / "inbox.db"
    shutil.copy(complete, path)
    edit(path, "UPDATE push SET attempt = X'00' WHERE seq = 4061")
    server = start(*stores.flags(path, memory_records=2))
    statuses = {"/pushes/4061": set(), "/pushes/seqs?after=4061": set(), "/pushes/seqs?kind=*": set()}
    done = threading.Event()

    def repeat(path):
        while not done.is_set():
            statuses[path].add(server.request("GET", "/api/v1" + path).status)

    threads = [threading.Thread(target=repeat, args=(path,)) for path in statuses for _ in range(3)]
    for thread in threads:
        thread.start()
    time.sleep(2)
    done.set()
    for thread in threads:
        thread.join()
    assert statuses == {"/pushes/4061": {503}, "/pushes/seqs?after=4061": {200}, "/pushes/seqs?kind=*": {503}}


#: Requests for the pushes of the file, and where the response has the pushes that are left out of it.
INCOMPLETE = {
    "/pushes?limit=1000&kind=*": lambda found: [item["seq"] for item in found["items"]],
    "/pushes?limit=1000&kind=*&order=desc": lambda found: [item["seq"] for item in found["items"]],
    "/stats?kind=*": lambda found: found["matched"],
    "/findings?kind=*": lambda found: found["total"],
}


def answers(server):
    return {path: server.request("GET", "/api/v1" + path) for path in INCOMPLETE}


@pytest.mark.parametrize("table, column", [("push", "outcome"), ("push", "headers"), ("push", "attempt"), ("connection", "http")])
def test_lists_statistics_and_findings_leave_out_edited_pushes(binary, certs, complete, tmp_path, start, table, column):
    """They say that they are not complete, and so is the analysis that a verification needs."""
    path = tmp_path / "inbox.db"
    shutil.copy(complete, path)
    whole = start(*stores.flags(path, memory_records=2))
    before = answers(whole)
    assert all(response.json["complete"] for response in before.values())
    assert whole.stop() == 0
    edit(path, f"UPDATE {table} SET {column} = X'00' WHERE rowid IN (SELECT rowid FROM {table} ORDER BY rowid DESC LIMIT 3, 2)")
    server, refusal = start_or_refusal(binary, certs, path, tmp_path)
    assert server, refusal
    try:
        after = answers(server)
        assert {path: response.status for path, response in after.items()} == dict.fromkeys(INCOMPLETE, 200)
        assert not any(response.json["complete"] for response in after.values())
        lists = [path for path in INCOMPLETE if path.startswith("/pushes")]
        for path_of_list in lists:
            one, other = (INCOMPLETE[path_of_list](found[path_of_list].json) for found in (before, after))
            left_out = set(one) - set(other)
            assert other == [seq for seq in one if seq not in left_out] and left_out
            if table == "push":
                assert len(left_out) == 2
        first = min(left_out)
        assert server.request("GET", f"/api/v1/pushes/{first}").status == 503, "it is not reported as missing"
        response = server.request("POST", "/api/v1/verify", {"nothing_lost": True})
        assert response.status == 503 or not response.json["complete"], response.body
        assert server.logged("lists, statistics and findings leave the push out", f"in the table {table}, row")
        with pytest.raises((http.client.IncompleteRead, ConnectionError)):
            server.request("GET", "/api/v1/export?kind=*")
    finally:
        server.kill()


def test_a_missing_row_of_totals(binary, certs, complete, tmp_path):
    path = tmp_path / "inbox.db"
    shutil.copy(complete, path)
    edit(path, "DELETE FROM contents")
    refusal = check(binary, certs, path, tmp_path / "refused", "contents")
    repair(binary, path, refusal)
    assert check(binary, certs, path, tmp_path / "repaired") is None


def test_pushes_are_found_without_their_index(complete, tmp_path, start):
    """A block that is missing, or whose row has values of other types, is searched as a whole."""
    path = tmp_path / "inbox.db"
    queries = [f"device_token={'ab' * 32}", f"apns_id=*&device_token={'ef' * 32}", "since=-24h", "kind=*"]
    found = []
    for number, sql in enumerate(["SELECT 1", *some([
            "DELETE FROM block", "UPDATE block SET device_tokens = NULL, apns_ids = 5, push_keys = X'00', oldest = 'x'",
            "UPDATE block SET oldest = 'x', newest = NULL", "UPDATE block SET first_seq = 8193",
            "UPDATE block SET first_seq = 17"], 2)]):
        path = tmp_path / f"{number}.db"
        shutil.copy(complete, path)
        edit(path, sql)
        server = start(*stores.flags(path, memory_records=2))
        found.append([[record["seq"] for record in server.api("GET", f"/pushes?limit=1000&{query}")["items"]] for query in queries])
    assert found == [found[0]] * len(found) and all(found[0][0:1])


# The commands that check and repair


def test_a_sound_file_is_not_changed(binary, complete, tmp_path):
    path = tmp_path / "inbox.db"
    shutil.copy(complete, path)
    before = path.read_bytes()
    code, found = store(binary, "check", path)
    assert (code, found["problem_count"], found["unreadable"]) == (0, 0, 0) and found["readable"] > 50
    assert store(binary, "check", f"sqlite:{path}")[0] == 0
    code, repaired = store(binary, "repair", path)
    assert code == 0 and repaired["former"] is None and path.read_bytes() == before
    assert sorted(file.name for file in tmp_path.iterdir()) == ["inbox.db"]


def test_a_repair_keeps_everything_that_can_be_read(binary, certs, complete, tmp_path, start):
    path = tmp_path / "inbox.db"
    shutil.copy(complete, path)
    server = start(*stores.flags(path, memory_records=2))
    server.api("PUT", "/devices/" + "ef" * 32, {"topic": "com.example.app"})
    before = {record["seq"]: record for record in stores.everything(server)}
    assert server.stop() == 0
    state = "SELECT name, value FROM state ORDER BY name"
    with contextlib.closing(sqlite3.connect(path)) as db:
        rows, last = db.execute(state).fetchall(), db.execute("SELECT max(last_seq, reserved_seq) FROM contents").fetchone()[0]
    lost = sorted(before)[3:6]
    edit(path, f"UPDATE push SET headers = 7 WHERE seq = {lost[0]}", f"UPDATE push SET outcome = '{SECRET}' WHERE seq = {lost[1]}",
         f"UPDATE push SET stream = NULL WHERE seq = {lost[2]}", "UPDATE contents SET count = 'x', emptied_through = -5",
         "UPDATE provider_token SET issued_at = 'x'")
    code, found = store(binary, "check", path)
    assert code == 1 and (found["readable"], found["unreadable"]) == (len(before) - 3, 3), found
    assert [f"row {seq}, " in "\n".join(found["problems"]) for seq in lost] == [True] * 3
    assert any("table contents, emptied_through" in text or "table contents, count" in text for text in found["problems"])
    damaged = path.read_bytes()
    report = store(binary, "repair", path)[1]
    assert report["readable"] == len(before) - 3 and path.with_name("inbox.db.damaged").read_bytes() == damaged
    with contextlib.closing(sqlite3.connect(path)) as db:
        assert db.execute(state).fetchall() == rows
        assert db.execute("SELECT last_seq, count FROM contents").fetchone() == (last, len(before) - 3)
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    server = start(*stores.flags(path, memory_records=2))
    after = {record["seq"]: record for record in stores.everything(server)}
    assert set(before) - set(after) == set(lost)
    different = {seq for seq in after if any(after[seq][name] != before[seq][name] for name in ("request", "outcome", "apns", "attempt"))}
    assert not different
    token = next(record["request"]["device_token"] for record in after.values() if record["request"].get("device_token"))
    assert server.api("GET", "/pushes", device_token=token)["items"], "the index was made again"
    assert push_once(server)[0] == 200 and max(record["seq"] for record in stores.everything(server)) == last + 1
    assert server.api("GET", "/devices/" + "ef" * 32)["topic"] == "com.example.app"


def test_a_repair_passes_over_pages_that_cannot_be_read(binary, certs, tmp_path, start):
    path = tmp_path / "inbox.db"
    server = start(*stores.flags(path))
    stores.load(server, 3000)
    assert server.stop() == 0
    with contextlib.closing(sqlite3.connect(path)) as db:
        size = db.execute("PRAGMA page_size").fetchone()[0]
        root = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'push'").fetchone()[0]
    content = bytearray(path.read_bytes())
    # The leaves of the table are named by the cells of its root.
    page = content[(root - 1) * size:root * size]
    assert page[0] == 5, "the root is no leaf"
    cells = [int.from_bytes(page[12 + 2 * index:14 + 2 * index], "big") for index in range(int.from_bytes(page[3:5], "big"))]
    leaves = [int.from_bytes(page[cell:cell + 4], "big") for cell in cells]
    for leaf in (leaves[0], leaves[len(leaves) // 2]):
        content[(leaf - 1) * size:leaf * size] = bytes(size)
    path.write_bytes(content)
    code, found = store(binary, "check", path)
    assert code == 1 and sum("the rows from" in text for text in found["problems"]) == 2, found
    report = store(binary, "repair", path)[1]
    assert 2000 < report["readable"] < 3000
    server = start(*stores.flags(path, memory_records=2))
    assert len(stores.everything(server)) == report["readable"]
    assert push_once(server)[0] == 200


@pytest.mark.parametrize(("damage", "number"), some([(damage, number) for number in range(100, 130) for damage in (
    "flipped_bytes", "empty_page", "exchanged_pages", "page_of_another_kind", "random_part", "cut")], 4))
def test_a_repaired_file_is_sound_or_the_refusal_says_why(binary, certs, complete, tmp_path, damage, number):
    path = tmp_path / "inbox.db"
    content = bytearray(complete.read_bytes())
    globals()[damage](content, random.Random(number))
    path.write_bytes(content)
    code, report = store(binary, "repair", path)
    if code:
        assert code == USAGE and str(path) in report and names_repair(report), report
        assert path.read_bytes() == content and [file.name for file in tmp_path.iterdir()] == ["inbox.db"]
        return
    assert check(binary, certs, path, tmp_path / "repaired") is None
    assert store(binary, "check", path)[1]["problem_count"] == 0


def test_a_file_in_use_can_be_checked_but_not_repaired(binary, stored):
    server, path = stored
    assert store(binary, "check", path)[0] == 0
    code, problem = store(binary, "repair", path)
    assert code == USAGE and "is used by another program" in problem
    assert push_once(server)[0] == 200


@pytest.mark.parametrize("name", ["hard link", "link", "after removal of a lock file"])
def test_a_file_belongs_to_one_server_by_all_its_names(binary, certs, stored, tmp_path, serve, name):
    server, path = stored
    other = tmp_path / "other" / "inbox.db"
    other.parent.mkdir()
    if name == "hard link":
        other.hardlink_to(path)
    elif name == "link":
        other.symlink_to(path)
    else:
        path.with_name("inbox.db.lock").unlink(missing_ok=True)
        other = path
    message = serve(*stores.flags(other))
    assert "is used by another program" in message
    assert push_once(server)[0] == 200, "the server is not disturbed"


@pytest.mark.parametrize(("arrange", "text"), [
    (lambda path: None, "does not exist, or is empty"),
    (lambda path: path.touch(), "does not exist, or is empty"),
    (lambda path: path.write_bytes(b"text" * 1000), "is no SQLite database"),
    (lambda path: edit(path, "CREATE TABLE mine (id)"), "is a database of another program"),
    (lambda path: path.mkdir(), "is not a file"),
], ids=["missing", "empty", "text", "foreign", "folder"])
@pytest.mark.parametrize("command", ["check", "repair"])
def test_other_files_are_refused(binary, tmp_path, command, arrange, text):
    path = tmp_path / "inbox.db"
    arrange(path)
    before = sorted(tmp_path.iterdir())
    code, problem = store(binary, command, path)
    assert code == USAGE and text in problem and str(path) in problem, problem
    assert sorted(tmp_path.iterdir()) == before


def test_files_of_other_versions_are_refused(binary, complete, tmp_path):
    path = tmp_path / "inbox.db"
    shutil.copy(complete, path)
    edit(path, "PRAGMA user_version = 99")
    assert "newer version" in store(binary, "check", path)[1]
    edit(path, "PRAGMA user_version = 4")
    code, problem = store(binary, "repair", path)
    assert code == USAGE and "older version" in problem and f"--store sqlite:{path}" in problem
    assert "pg_amcheck" in store(binary, "check", "postgres://127.0.0.1/x")[1]


def test_the_file_of_an_earlier_repair_is_kept(binary, complete, tmp_path):
    path = tmp_path / "inbox.db"
    shutil.copy(complete, path)
    edit(path, "UPDATE push SET headers = 7")
    path.with_name("inbox.db.damaged").write_text("kept")
    code, problem = store(binary, "repair", path)
    assert code == USAGE and "inbox.db.damaged is there from an earlier repair" in problem
    assert path.with_name("inbox.db.damaged").read_text() == "kept"


# Bytes and pages


def flipped_bytes(content, choice):
    for _ in range(choice.choice((1, 10, 200))):
        content[choice.randrange(len(content))] ^= 1 << choice.randrange(8)


def flipped_header(content, choice):
    content[choice.randrange(16, 100)] = choice.randrange(256)


def empty_page(content, choice):
    size = int.from_bytes(content[16:18], "big") or 65536
    first = choice.randrange(len(content) // size) * size
    content[first:first + size] = bytes(size)


def exchanged_pages(content, choice):
    size = int.from_bytes(content[16:18], "big") or 65536
    one, other = (choice.randrange(1, len(content) // size) * size for _ in range(2))
    content[one:one + size], content[other:other + size] = content[other:other + size], content[one:one + size]


def page_of_another_kind(content, choice):
    size = int.from_bytes(content[16:18], "big") or 65536
    content[choice.randrange(1, len(content) // size) * size] = choice.choice((0, 2, 5, 10, 13, 255))


def random_part(content, choice):
    first = choice.randrange(len(content))
    content[first:first + 500] = choice.randbytes(min(500, len(content) - first))


def cut(content, choice):
    del content[choice.randrange(len(content)):]


DAMAGES = [(damage, number) for number in range(40) for damage in (
    flipped_bytes, flipped_header, empty_page, exchanged_pages, page_of_another_kind, random_part, cut)]


@pytest.mark.parametrize(("damage", "number"), some(DAMAGES, 4), ids=lambda value: getattr(value, "__name__", value))
def test_damaged_bytes(binary, certs, complete, tmp_path, damage, number):
    path = tmp_path / "inbox.db"
    content = bytearray(complete.read_bytes())
    damage(content, random.Random(number))
    path.write_bytes(content)
    check(binary, certs, path, tmp_path / "run", seq=4061)


def test_a_file_that_is_edited_while_the_server_runs(complete, tmp_path, start):
    path = tmp_path / "inbox.db"
    shutil.copy(complete, path)
    server = start(*stores.flags(path, "--retain", "1h", "--max-records", "70", memory_records=2))
    for sql in ("UPDATE push SET received_at = 'x', payload_size = -1, headers = 7", "UPDATE connection SET listener = 'x'",
                "UPDATE contents SET count = 'x', bytes = NULL", "UPDATE block SET first_seq = 1 << 60",
                f"UPDATE push SET seq = {LARGEST} WHERE seq = (SELECT max(seq) FROM push)"):
        edit(path, sql)
        use(server)
        for _ in range(3):
            push_once(server)
    assert server.process.poll() is None


# The same values in PostgreSQL


@pytest.mark.parametrize(("column", "value"), some([
    (column, value) for value in (LARGEST, -LARGEST - 1)
    for column in ("last_seq", "emptied_through", "count", "bytes", "last_connection", "reserved_seq")], 2))
def test_a_total_at_its_limit_in_postgresql(inbox, start, serve, column, value):
    server = start(*stores.flags(inbox))
    assert push_once(server)[0] == 200
    assert server.stop() == 0
    inbox.execute(f"UPDATE contents SET {column} = {value}")
    message = serve(*stores.flags(inbox))
    assert f"in the table contents, {column} is out of range" in message and names_repair(message), message
    inbox.execute(re.search(r'"(UPDATE contents .*)"', message)[1])
    server = start(*stores.flags(inbox))
    assert push_once(server)[0] == 200 and len(stores.everything(server)) == 2


def test_edited_pushes_in_postgresql(inbox, start):
    server = start(*stores.flags(inbox, memory_records=2))
    for _ in range(6):
        assert push_once(server)[0] == 200
    wait_until(lambda: len(stores.pushes_view(inbox)) == 6, "they are written")
    inbox.execute(f"UPDATE push SET latency_ns = {LARGEST}, arrived_ns = {LARGEST}, attempt = {LARGEST} WHERE seq = 1")
    inbox.execute("UPDATE push SET headers = 'x'::bytea, received_at = NULL WHERE seq = 2")
    use(server, 1)
    use(server, 2)
    assert server.request("GET", "/api/v1/pushes/2").status == 503
    found = server.api("GET", "/pushes")
    assert [item["seq"] for item in found["items"]] == [3, 4, 5, 6, 7, 8] and not found["complete"]
    assert push_once(server)[0] == 200


# Removed files


@pytest.fixture
def stored(tmp_path, start):
    path = tmp_path / "inbox.db"
    server = start(*stores.flags(path, memory_records=2))
    for _ in range(5):
        assert push_once(server)[0] == 200
    wait_until(lambda: len(stores.pushes_view(path)) == 5, "they are written")
    return server, path


def replace(path):
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content)


@pytest.mark.parametrize("remove", [
    lambda path: path.unlink(), lambda path: path.with_name(path.name + "-wal").unlink(), replace,
], ids=["removed", "log removed", "replaced"])
def test_a_file_that_is_removed_while_the_server_runs(stored, binary, remove):
    server, path = stored
    remove(path)
    # Without a push.
    wait_until(lambda: readiness(server)[0] == 503, "it is noticed", 10)
    problem = readiness(server)[1]["problem"]
    assert str(path) in problem and "was removed or replaced" in problem and "export" in problem
    assert stores.status(server)["store"]["problem"] == problem
    assert server.logged("the store", "fails", "was removed or replaced", "move it back")
    assert push_once(server)[0] == 503
    assert len(stores.everything(server)) == 5, "the pushes can be saved"
    assert server.request("GET", "/livez").status == 200


def test_a_file_that_is_moved_back(stored):
    server, path = stored
    path.rename(path.with_name("away.db"))
    wait_until(lambda: readiness(server)[0] == 503, "it is noticed", 10)
    path.with_name("away.db").rename(path)
    wait_until(lambda: readiness(server)[0] == 200, "it works again", 10)
    assert push_once(server)[0] == 200
    assert server.logged("works again")


def test_a_removed_file_with_pushes_that_are_not_kept(tmp_path, start):
    path = tmp_path / "inbox.db"
    server = start(*stores.flags(path, "--store-failure", "drop"))
    path.unlink()
    wait_until(lambda: readiness(server)[0] == 503, "it is noticed", 10)
    assert push_once(server)[0] == 200
    wait_until(lambda: stores.status(server)["store"]["lost"] == 1, "it is counted", 10)


# Permissions


def test_only_the_user_can_read_the_files_of_a_store(stored, tmp_path):
    _, path = stored
    modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir() if file.name != "inbox.db.lock"}
    assert modes == {"inbox.db": 0o600, "inbox.db-wal": 0o600, "inbox.db-shm": 0o600}


def test_the_permissions_of_a_file_that_exists_remain(complete, tmp_path, start):
    path = tmp_path / "inbox.db"
    shutil.copy(complete, path)
    path.chmod(0o640)
    start(*stores.flags(path))
    assert path.stat().st_mode & 0o777 == 0o640


def test_the_copy_of_an_older_file_can_only_be_read_by_the_user(complete, tmp_path, start):
    path = tmp_path / "inbox.db"
    shutil.copy(complete, path)
    edit(path, "DROP TABLE state", "DROP INDEX push_of_storage", "PRAGMA user_version = 4")
    path.chmod(0o644)
    start(*stores.flags(path))
    assert path.with_name(path.name + ".version4").stat().st_mode & 0o777 == 0o600
