"""The web UI of a view of several servers: pushes are named by server and number."""

import secrets

from support.many_schemas import push, servers, stored, viewing
from support.browser import View


def test_the_page_names_pushes_by_server_and_number(binary, certs, postgres, tmp_path, browser):
    prefix = f"load{secrets.token_hex(4)}"
    with servers(binary, certs, postgres, [f"{prefix}_1", f"{prefix}_2"]) as started:
        for server in (*started.values(), *started.values()):
            assert push(server).status == 200
        with viewing(binary, tmp_path / "view", postgres, f"{prefix}_*") as viewer:
            names = [one["seq"] for one in stored(viewer, 4)]
            view = View(browser, viewer).live()
            # The rows, newest first, and the push that a click opens.
            view.visit("/?view=inbox")
            view.page.locator(".row").nth(3).wait_for()
            assert [one.get_attribute("data-seq") for one in view.page.locator(".row[data-seq]").all()] == names[::-1]
            view.page.locator(f".row[data-seq='{names[1]}'] .row-title").click()
            view.page.locator(f".tab-panel[data-seq='{names[1]}']").wait_for()
            assert f"#{names[1]}" in view.page.locator(".detail").inner_text()
            # A link to a push that has no other name.
            view.visit(f"/?view=inbox&push={names[2]}")
            view.page.locator(f".tab-panel[data-seq='{names[2]}']").wait_for()
            view.visit(f"/?view=inbox&push={names[2]}&tab=timeline")
            view.page.locator(".lane-bar").first.wait_for()
            # One that arrives later is above the others.
            assert push(started[f"{prefix}_1"]).status == 200
            view.page.locator(f".row[data-seq='{prefix}_1:3']").wait_for()
            assert view.page.locator(".row[data-seq]").count() == 5
            # A view has no connections and no devices, for which the page asks.
            assert not [one for one in view.complaints if "404 (Not Found)" not in one], view.complaints
            view.close()
