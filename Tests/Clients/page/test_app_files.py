"""The preview with an app's name, icon and texts, from files that are chosen in it."""

import json
import struct
import zlib

from support.browser import accessibility

STRINGS = {"sourceLanguage": "en", "version": "1.0", "strings": {
    "ORDER_SHIPPED": {"localizations": {
        "en": {"stringUnit": {"state": "translated", "value": "Order %@ ships in %2$@ days, 100 %%"}},
        "de": {"stringUnit": {"state": "translated", "value": "In %2$@ Tagen: Bestellung %1$@"}}}},
    "PARCELS": {"localizations": {"en": {"variations": {"plural": {"one": {"stringUnit": {"value": "%lld parcel"}}, "other": {"stringUnit": {"value": "%lld parcels"}}}}}}},
    "<b>Title</b>": {}, "__proto__": {"localizations": {"en": {"stringUnit": {"value": "polluted"}}}}}}


def png():
    """An image of one red pixel."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(b"\x00\xff\x00\x00"))
            + chunk(b"IEND", b""))


def test_the_preview_has_the_name_the_icon_and_the_texts_of_the_app(server, open_page, provider, device, tmp_path):
    alert = {"title-loc-key": "<b>Title</b>", "loc-key": "ORDER_SHIPPED", "loc-args": ["4711", "3"], "subtitle-loc-key": "PARCELS", "subtitle-loc-args": ["2"]}
    one = provider(server)
    one.push(device, {"aps": {"alert": alert}}, topic="com.example.shop")
    one.push(device, {"aps": {"alert": {"loc-key": "toString", "title": "Unknown key"}}}, topic="com.example.shop")
    first, second = [push["seq"] for push in server.pushes(device_token=device)]
    view = open_page(server, f"/?push={first}", reduced_motion="reduce")
    card = view.page.locator(".note-card")
    card.get_by_text("ORDER_SHIPPED").wait_for()
    view.page.get_by_text("App name, icon and texts").click()
    strings, icon = tmp_path / "Localizable.xcstrings", tmp_path / "icon.png"
    strings.write_text(json.dumps(STRINGS))
    icon.write_bytes(png())
    view.page.get_by_label("Localizable.xcstrings").set_input_files(strings)
    card.get_by_text("Order 4711 ships in 3 days, 100 %", exact=True).wait_for()
    card.get_by_text("2 parcels", exact=True).wait_for()
    card.get_by_text("<b>Title</b>", exact=True).wait_for()
    view.page.get_by_label("Language").select_option("de")
    card.get_by_text("In 3 Tagen: Bestellung 4711", exact=True).wait_for()
    # A text that is missing in a language is that of the source.
    card.get_by_text("2 parcels", exact=True).wait_for()
    view.page.get_by_label("Icon").set_input_files(icon)
    card.locator(".app-icon canvas").wait_for()
    view.page.get_by_label("Name", exact=True).fill("Shop")
    view.page.keyboard.press("Tab")
    assert view.page.evaluate("() => document.activeElement.id") == "app-icon"
    view.page.get_by_label("Name", exact=True).fill("The shop")
    # The first click acts, although the name changes by it.
    with view.page.expect_file_chooser():
        view.page.get_by_label("Icon").click()
    view.page.get_by_label("Where it is displayed").focus()
    view.page.get_by_label("Where it is displayed").select_option("Home Screen")
    view.page.locator(".home-name", has_text="The shop").wait_for()
    assert view.page.evaluate("() => document.activeElement.className") == "surface-picker"
    assert accessibility(view.page) == []

    # It stays in the browser, for the app.
    view.page.goto(f"{view.base}/?push={second}")
    view.page.get_by_label("Where it is displayed").wait_for()
    card.get_by_text("toString").wait_for()
    card.locator(".app-icon canvas").wait_for()
    view.page.get_by_text("App name, icon and texts").click()
    for name, content in (("broken.xcstrings", b"{"), ("none.xcstrings", b'{"strings": 1}'), ("no.png", b"no image")):
        file = tmp_path / name
        file.write_bytes(content)
        view.page.get_by_label("Icon" if name.endswith("png") else "Localizable.xcstrings").set_input_files(file)
        view.page.locator(".toast.is-error", has_text=f"{name} cannot be read").wait_for()
