"""The overview, the findings and the faults of the web UI."""

import re

HOSTILE = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>\u202e\u0000"


# Loading

def test_the_page_loads_few_files(server, open_page):
    view = open_page(server).live()
    view.until("() => performance.getEntriesByType('resource').some((one) => one.name.includes('/page/later.js'))")
    files = [name for name in view.page.evaluate("() => performance.getEntriesByType('resource').map((one) => new URL(one.name).pathname)")
             if name.startswith("/page/") and not name.endswith(".svg")]
    # The first rows need no more than these; what follows is loaded after them.
    assert sorted(files) == ["/page/app.css", "/page/app.js", "/page/early.js", "/page/later.js"]
    for name in ("app", "early", "later"):
        text = server.request("GET", f"/page/{name}.js").body.decode()
        assert not re.search(r"^(import|export) ", text, re.M), name


# Overview

def test_the_overview_counts_and_filters(start, open_page, provider, device):
    server = start()
    one = provider(server)
    for _ in range(3):
        one.alert(device, "Good")
    one.push(device, {"aps": {"alert": "Bad"}}, topic="")
    view = open_page(server, "/?view=overview").live()
    view.page.locator(".tile", has_text="Pushes").get_by_text("4", exact=True).wait_for()
    assert "75 %" in view.page.locator(".tile", has_text="Accepted").inner_text()
    assert "3 accepted" in view.page.locator(".chart-caption").inner_text() and "1 rejected" in view.page.locator(".chart-caption").inner_text()
    view.page.locator(".ranking", has_text="Reasons").get_by_role("button").first.click()
    view.until("() => document.querySelectorAll('.row').length === 1")
    assert "q=reason%3AMissingTopic" in view.url


def test_the_overview_is_beside_the_list_while_no_push_is_selected(start, open_page, provider, device):
    server = start()
    one = provider(server)
    one.alert(device, "Hello")
    view = open_page(server).live()
    overview = view.page.locator(".detail .overview")
    overview.locator(".tile", has_text="Pushes").get_by_text("1", exact=True).wait_for()
    one.push(device, {"aps": {"alert": "Bad"}}, topic="")
    overview.locator(".tile", has_text="Pushes").get_by_text("2", exact=True).wait_for()
    overview.locator(".ranking", has_text="Reasons").get_by_role("button").first.click()
    view.until("() => document.querySelectorAll('.row').length === 1")
    overview.locator(".tile", has_text="Pushes").get_by_text("1", exact=True).wait_for()
    view.page.locator(".row").first.click()
    overview.wait_for(state="detached")


def test_a_time_range_selected_in_the_overview_filters_the_list(start, open_page, provider, device):
    server = start()
    one = provider(server)
    one.alert(device, "Before")
    server.api("POST", "/clock/advance", {"by": "10m"})
    one.alert(device, "After")
    view = open_page(server, "/?view=overview").live()
    chart = view.page.get_by_role("slider", name="Pushes over time by outcome")
    chart.locator("path").first.wait_for()
    box = chart.bounding_box()
    view.page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 40)
    view.page.mouse.down()
    view.page.mouse.move(box["x"] + box["width"] - 2, box["y"] + 40, steps=4)
    view.page.mouse.up()
    view.until("() => document.querySelectorAll('.row').length === 1")
    view.row("After").wait_for()
    assert "since" in view.url and "until" in view.url

    view.page.go_back()
    chart.locator("path").first.wait_for()
    chart.focus()
    view.page.keyboard.press("ArrowLeft")
    assert "1 accepted" in chart.get_attribute("aria-valuetext")
    view.page.keyboard.press("Enter")
    view.row("After").wait_for()


def test_a_time_range_selected_by_keys_is_kept_while_pushes_arrive(start, open_page, provider, device):
    server = start()
    one = provider(server)
    one.alert(device, "Before")
    view = open_page(server, "/?view=overview").live()
    chart = view.page.get_by_role("slider", name="Pushes over time by outcome")
    chart.locator("path").first.wait_for()
    chart.focus()
    view.page.keyboard.press("ArrowLeft")
    selected = chart.get_attribute("aria-valuetext")
    assert "Enter" in selected
    one.alert(device, "After")
    view.until("() => document.querySelector('[data-group=all] .group-count')?.textContent === '2'")
    # The Overview was drawn at the same moment.
    assert chart.get_attribute("aria-valuetext") == selected
    view.page.keyboard.press("Enter")
    view.row("Before").wait_for()
    # Beside the list, the focus stays in the chart.
    chart.focus()
    view.page.keyboard.press("ArrowLeft")
    view.page.keyboard.press("Enter")
    view.until("() => document.querySelector('.detail .overview-content')?.getAttribute('aria-busy') === 'false'")
    assert view.page.evaluate("() => document.activeElement.className") == "chart-area"


def test_the_overview_of_an_invalid_search_says_so(start, open_page, provider, device):
    server = start()
    view = open_page(server, "/?view=overview&q=stauts:503")
    view.page.locator(".overview .notice.is-error", has_text="stauts").wait_for()
    view.forget_complaint()  # The browser itself logs the 400.


def test_an_error_of_the_counts_is_that_of_its_search(start, open_page, provider, device):
    server = start()
    one = provider(server)
    one.alert(device, "Good")
    one.push(device, {"aps": {"alert": "Bad"}}, topic="")
    view = open_page(server).live()
    overview = view.page.locator(".detail .overview")
    pushes = overview.locator(".tile", has_text="Pushes")
    pushes.get_by_text("2", exact=True).wait_for()
    view.page.route("**/api/v1/stats?search=status*200*", lambda route: route.fulfill(status=400, json={"detail": "not counted"}))
    view.page.get_by_label("Search pushes").fill("status:200")
    overview.locator(".is-error", has_text="not counted").wait_for()
    # The other counts go on.
    one.alert(device, "Third")
    view.until("() => document.querySelector('[data-group=all] .group-count').textContent === '3'")
    view.page.get_by_label("Search pushes").fill("status:400")
    pushes.get_by_text("1", exact=True).wait_for()
    assert overview.locator(".is-error").count() == 0
    view.page.get_by_label("Search pushes").fill("status:200")
    overview.locator(".is-error", has_text="not counted").wait_for()
    # The next count of the same search ends the problem.
    view.page.unroute("**/api/v1/stats?search=status*200*")
    one.alert(device, "Fourth")
    pushes.get_by_text("3", exact=True).wait_for()
    view.forget_complaint()


def test_findings_that_cannot_be_counted_leave_the_other_counts(server, open_page, provider, device):
    view = open_page(server, "/?view=findings").live()
    view.page.route("**/api/v1/findings?*", lambda route: route.fulfill(status=500, json={"detail": "not counted"}))
    provider(server).alert(device, "Good")
    view.page.locator(".is-error", has_text="not counted").wait_for()
    view.until("() => document.querySelector('[data-group=all] .group-count').textContent === '1'")
    view.page.unroute("**/api/v1/findings?*")
    view.page.get_by_text("No findings: ").wait_for()
    view.forget_complaint()


# Findings

def test_findings_have_trend_evidence_advice_and_commands(start, open_page, provider, device, binary):
    server = start()
    one = provider(server)
    for _ in range(3):
        one.push(device, {"aps": {"alert": "Bad"}}, topic="")
    view = open_page(server, "/?view=findings").live()
    card = view.page.get_by_role("article", name="retried-permanent")
    card.wait_for()
    found = next(item for item in server.api("GET", "/findings")["items"] if item["finding"] == "retried-permanent")
    assert found["advice"] in card.inner_text() and f"{found['count']} pushes" in card.inner_text()
    card.get_by_text("How to reproduce").click()
    commands = card.locator(".command code").all_inner_texts()
    assert commands[0] == "apns-mock profile use bad-token-400"
    card.get_by_role("button", name=f"Open push {found['records'][0]['seq']}").click()
    view.page.locator(f".tab-panel[data-seq='{found['records'][0]['seq']}']").wait_for()


def test_the_profiles_in_commands_exist(start, open_page):
    server = start()
    names = {profile["name"] for profile in server.api("GET", "/profiles")["items"]}
    source = server.request("GET", "/page/modules/panels/reproduction.js").body.decode()
    used = set(re.findall(r'": "([\w-]+)"', source))
    assert used and used <= names
    kinds = set(re.findall(r'"([\w-]+)": "', source))
    assert "hot-retry" in kinds


# Faults

def test_a_rule_is_written_by_the_form_and_tried_on_recorded_pushes(start, open_page, provider, device):
    server = start()
    one = provider(server)
    for number in range(6):
        one.push(device, {"aps": {"alert": "x"}}, topic="com.example.app" if number % 3 else "com.other.app")
    view = open_page(server, "/?view=faults").live()
    view.page.get_by_text("Add a rule").click()
    view.page.get_by_label("Pushes", exact=True).fill("topic:com.other.*")
    view.page.get_by_text("2 of the last 6 pushes").wait_for()
    view.page.get_by_label("Pushes", exact=True).fill("topc:com.other.app")
    view.page.locator(".rule-result .is-error", has_text="topc").wait_for()
    view.page.get_by_label("Pushes", exact=True).fill("topic:com.other.*")
    view.page.get_by_label("Action").select_option("Delay the response")
    view.page.get_by_label("By", exact=True).fill("1ms")
    view.page.get_by_text("2 of the last 6 pushes").wait_for()
    view.page.get_by_label("Action").select_option("Respond with an error")
    view.page.get_by_role("button", name="Add the rule").click()
    view.page.get_by_role("button", name="Remove outage").wait_for()
    assert one.push(device, {"aps": {"alert": "x"}}, topic="com.other.app").status_code == 503
    assert one.alert(device, "Another topic") == 200


def test_the_clock_is_frozen_advanced_and_reset(start, open_page):
    server = start()
    view = open_page(server, "/?view=faults").live()
    clock = view.page.get_by_role("region", name="Clock")
    clock.get_by_role("button", name="Freeze").click()
    clock.get_by_text("frozen", exact=True).wait_for()
    before = server.api("GET", "/clock")
    assert before["mode"] == "frozen"
    clock.get_by_role("button", name="Advance the clock by 61m").click()
    view.until("(before) => document.querySelector('.clock-time')?.textContent.includes(before) === false", before["now"][11:16])
    assert server.api("GET", "/clock")["now"] > before["now"]
    clock.get_by_label("Advance by").fill("soon")
    clock.get_by_role("button", name="Advance", exact=True).click()
    clock.get_by_text("Use a duration such as").wait_for()
    clock.get_by_role("button", name="Real time").click()
    clock.get_by_text("real time", exact=True).wait_for()
    assert server.api("GET", "/clock")["mode"] == "real"


def test_the_clock_says_that_new_provider_tokens_are_expired(start, open_page):
    server = start()
    view = open_page(server, "/?view=faults").live()
    clock = view.page.get_by_role("region", name="Clock")
    clock.get_by_text("real time", exact=True).wait_for()
    bar = view.page.locator(".bar-clock")
    assert not bar.is_visible() and not clock.get_by_text("ExpiredProviderToken").is_visible()
    clock.get_by_role("button", name="Advance the clock by 20m").click()
    bar.get_by_text("clock +20 min").wait_for()
    assert "403" not in bar.text_content()
    clock.get_by_role("button", name="Advance the clock by 61m").click()
    banner = view.page.locator(".banner", has_text="gets 403 ExpiredProviderToken")
    banner.wait_for()
    assert "expired-jwt-403" in banner.inner_text()
    clock.get_by_text("gets 403 ExpiredProviderToken until the clock shows the real time").wait_for()
    clock.get_by_role("button", name="Real time").click()
    bar.wait_for(state="hidden")
    banner.wait_for(state="hidden")
    clock.get_by_text("gets 403 ExpiredProviderToken").wait_for(state="hidden")


# Hostile data

def test_hostile_data_stays_text(start, open_page, provider, device):
    server = start()
    server.api("PUT", "/fixtures", {"devices": [{"id": "phone-0", "apps": [{"bundle_id": "com.example.app", "tokens": {"alert": f"{0:08x}" * 8}}]}]})
    one = provider(server)
    for _ in range(2):
        one.push(device, {"aps": {"alert": {"title": HOSTILE, "body": HOSTILE}, "badge": 3}}, topic="<img/src=x>")
    one.alert(device, HOSTILE)
    one.push(f"{0:08x}" * 8, {"aps": {"alert": {"title": HOSTILE}, "badge": 3}}, apns_collapse_id="<b>id</b>")
    server.api("POST", "/rules", {"name": "late", "when": {"topic": "<i>none</i>"}, "do": {"respond": {"status": 429, "reason": "<b>no</b>"}}})
    run = server.request("POST", "/api/v1/runs", {"name": HOSTILE, "labels": {HOSTILE: "<b>label</b>"}}).json["id"]
    server.request("POST", f"/api/v1/runs/{run}/tests", {"name": HOSTILE})
    view = open_page(server).live()
    for path in ("overview", "findings", "connections", "devices", "faults", "runs", f"runs&run={run}"):
        view.visit(f"/?view={path}")
        view.page.locator("main > .panel").wait_for()
        if path == "overview":
            view.page.locator(".ranking", has_text="<img/src=x>").first.wait_for()
        elif path == "findings":
            view.page.locator(".finding").first.wait_for()
        elif path == "connections":
            view.page.locator(".track-head").first.click()
            view.page.locator(".sequence").wait_for()
        elif path == "devices":
            view.page.get_by_role("button", name="phone-0", exact=True).click()
            view.page.locator(".device-detail .phone").wait_for()
            view.page.get_by_role("button", name="Recent device tokens").click()
            view.page.locator(".device .screen-line").first.wait_for()
        elif path == "faults":
            view.page.get_by_role("button", name="Remove late").wait_for()
        elif path == "runs":
            view.page.locator(".runs tbody tr").first.wait_for()
        else:
            view.page.locator(".report-verdict").wait_for()
        assert view.page.title().endswith("apns-mock"), path
        assert view.page.locator("main img, main script, main iframe, main b, main i").count() == 0, path
        assert view.page.evaluate("() => document.documentElement.scrollWidth") <= 1440, path
