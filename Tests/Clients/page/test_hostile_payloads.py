"""Hostile payloads: scripts, markup, bidirectional control characters, oversized texts."""

import json

import pytest

HOSTILE = {
    "script": "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">",
    "attribute": "\" onmouseover=\"document.title='owned'\" x=\"",
    "template": "{{constructor.constructor('document.title=1')()}} ${document.title=1} javascript:alert(1)",
    "bidi": "\u202egpj.exe\u2066\u202dabc",
    "controls": "a\u0000b\u0007c\u001b[31md\u200be\ufefff\U000e0041g",
    "emoji": "👨‍👩‍👧‍👦" * 150,
    "combining": "Z" + "\u0363\u0351\u0316" * 600,
    "lines": "\n" * 1500 + "end",
    "long": "W" * 3900,
}
TABS = ["preview", "payload", "headers", "auth", "verdict", "timeline"]


# The others are of the same kind.
LONG = {"template", "emoji", "combining", "lines"}


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.long) if name in LONG else name for name in HOSTILE])
def test_payloads_stay_text(server, kept_view, provider, device, name):
    text = HOSTILE[name]
    payload = {"aps": {"alert": {"title": text}, "thread-id": text[:20]}, "own": 1}
    body = json.dumps(payload, ensure_ascii=False).encode()
    assert len(body) <= 4096, "a case that is refused shows less"
    provider(server).push(device, body.decode(), apns_collapse_id="<b>id</b>")
    seq = server.record(device)["seq"]
    view = kept_view
    view.visit(f"/?q=token:{device}")
    view.page.locator(f".row[data-seq='{seq}'] .row-title").wait_for()
    assert view.page.locator(".row").bounding_box()["height"] == 32, "a row keeps its height"
    view.visit(f"/?q=token:{device}&push={seq}")
    for tab in TABS:
        view.page.locator(f"#tab-{tab}").click()
        view.page.locator(f"#tab-{tab}[aria-selected=true]").wait_for()
        view.page.locator(f".tab-panel[data-seq='{seq}'] > *").first.wait_for()
        assert view.page.title() == "apns-mock"
        assert view.page.locator("main img, main script, main iframe, main b").count() == 0
        box = view.page.locator(".detail").bounding_box()
        assert box["x"] + box["width"] <= 1441 and box["y"] + box["height"] <= 901
    assert view.page.evaluate("() => document.documentElement.scrollWidth") <= 1440


def test_invisible_characters_are_named(server, open_page, provider, device):
    provider(server).push(device, {"aps": {"alert": "pay\u200bpal \u202egpj.exe"}})
    seq = server.record(device)["seq"]
    view = open_page(server, f"/?q=token:{device}&push={seq}&tab=payload")
    line = view.page.locator(".json-line", has_text="alert")
    line.locator(".hidden-char", has_text="RLO").wait_for()
    assert line.locator(".hidden-char").all_inner_texts() == ["ZWSP", "RLO"]
    view.page.locator(".row .hidden-char", has_text="RLO").wait_for()
    assert view.page.locator(".row .hidden-char").all_inner_texts() == ["ZWSP", "RLO"]
    assert line.locator(".hidden-char").first.get_attribute("title") == "U+200B ZWSP"


def test_bidirectional_text_does_not_affect_other_text(server, open_page, provider, device):
    """An unterminated bidirectional override must not affect the text after it."""
    provider(server).push(device, {"aps": {"alert": {"title": "\u202eabc", "body": "\u202exyz"}}})
    seq = server.record(device)["seq"]
    view = open_page(server, f"/?push={seq}")
    view.page.locator(".note-card").wait_for()
    assert view.page.locator(".note-title bdi").count() == 1
    title, when = view.page.locator(".note-title").bounding_box(), view.page.locator(".note-when").bounding_box()
    assert title["x"] < when["x"]


def test_headers_and_topics_stay_text(server, open_page, provider, device):
    provider(server).push(device, {"aps": {"alert": "x"}}, topic="<img/src=x>", x_own="<script>alert(1)</script>")
    seq = server.record(device)["seq"]
    view = open_page(server, f"/?q=token:{device}&push={seq}&tab=headers")
    view.page.locator(".table", has_text="<script>alert(1)</script>").wait_for()
    assert view.page.locator("main img, main script").count() == 0


@pytest.mark.parametrize("body", ["[" * 4000, "[" * 2000 + "]" * 2000, '{"a":' * 500 + "1" + "}" * 500, '{"a":1,"a":2}', "\x00\xff", "null",
                                  '{"__proto__":{"polluted":1},"aps":{"alert":"p"}}', '{"aps":{"alert":"\\ud800 lone"}}'],
                         ids=["open", "deep list", "deep object", "twice", "binary", "null", "proto", "surrogate"])
def test_odd_json_is_shown(server, kept_view, provider, device, body):
    provider(server).push(device, body)
    view, seq = kept_view, server.record(device)["seq"]
    view.visit(f"/?q=token:{device}&push={seq}&tab=payload")
    panel = view.page.locator(f".tab-panel[data-seq='{seq}']")
    panel.locator(".payload > *").first.wait_for()
    if body == '{"a":1,"a":2}':
        view.page.locator(".json-line", has_text='"a"').nth(1).wait_for()
    view.page.locator("#tab-preview").click()
    panel.locator(".statement").wait_for()
    assert view.page.evaluate("() => ({}).polluted === undefined")


def test_an_injected_script_does_not_run(server, open_page):
    """The browser enforces the page's content security policy: a script does not run even if it is inserted into
    the page.
    """
    view = open_page(server).live()
    view.page.evaluate("""() => {
        const script = document.createElement("script");
        script.textContent = "document.title = 'owned'";
        document.body.append(script);
        const image = document.createElement("img");
        image.setAttribute("onerror", "document.title = 'owned'");
        image.src = "/page/none";
        document.body.append(image);
        const mark = document.createElement("p");
        mark.setAttribute("style", "color: red");
        document.body.append(mark);
    }""")
    view.until("() => document.images[0].complete")
    assert view.page.title() == "apns-mock"
    assert any("Content Security Policy" in complaint for complaint in view.complaints)
    view.complaints.clear()
