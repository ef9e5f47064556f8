// An app's name, icon and localized texts, from files that are chosen in the preview. They stay in the browser, and the server does not get them.
import { showMessage } from "../copy.js";
import { h, replace } from "../dom.js";
import { store, stored } from "../settings.js";
import { object } from "../summary.js";
import { visible } from "../visible.js";

const MAX_FILE = 4_000_000; // bytes
const ICON_SIZE = 120; // pixels of a side
/** What the topic has after the bundle id for some push types. */
export const SUFFIX = /\.(voip-ptt|voip|complication|location-query|pushkit\.fileprovider|push-type\.\w+)$/;
const known = new Map(); // by bundle id

/** The bundle id that the topic of a push names. */
function bundleOf(record) {
  return (record.apns?.topic ?? "").replace(SUFFIX, "");
}

/** `{name, icon, language, source, strings}` of the app of a push, as far as they were chosen; `strings` has for each key a text for each language. */
function appOf(record) {
  const bundle = bundleOf(record);
  if (!known.has(bundle)) known.set(bundle, object(stored(`app.${bundle}`, {})) ?? {});
  return known.get(bundle);
}

/** The name of the app; one that is guessed from the topic if none was given. */
export function appName(record) {
  return appOf(record).name || (bundleOf(record).split(".").filter((part) => part && part !== "app").at(-1) ?? "App");
}

/** The icon of the app, or the first letter of its name. */
export function appIcon(record, ...children) {
  const { icon } = appOf(record);
  const element = h("span", { class: "app-icon", "aria-hidden": "true" }, icon ? null : appName(record)[0]?.toUpperCase() ?? "?", ...children);
  if (icon) draw(icon).then((canvas) => element.prepend(canvas), () => {});
  return element;
}

/** Draws an image, which the page's policy would not load. */
async function draw(base64) {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  return drawn(await createImageBitmap(new Blob([bytes])));
}

function drawn(image) {
  const canvas = h("canvas", { width: ICON_SIZE, height: ICON_SIZE });
  canvas.getContext("2d").drawImage(image, 0, 0, ICON_SIZE, ICON_SIZE);
  return canvas;
}

/** The text of a localization key with its arguments, in the chosen language; null if it is not known. */
export function localized(record, { key, args }) {
  const { strings = {}, language, source } = appOf(record);
  const texts = Object.hasOwn(strings, key) ? strings[key] : null;
  const text = texts?.[language] ?? texts?.[source];
  if (typeof text !== "string") return null;
  let next = 0;
  return text.replace(/%(?:%|(?:(\d+)\$)?(?:@|(?:\.\d+)?(?:l{0,2}[diu]|f)))/g, (format, number) => {
    if (format === "%%") return "%";
    const value = args[number ? number - 1 : next++];
    return value === undefined ? format : String(value);
  });
}

/** The languages that have texts. */
function languagesOf({ strings = {} }) {
  return [...new Set(Object.values(strings).flatMap((texts) => Object.keys(texts)))].sort();
}

/** The text of a localization; of one that depends on a number, the form "other". */
function textOf(one) {
  if (!object(one)) return null;
  return one.stringUnit?.value ?? textOf(one.variations?.plural?.other ?? one.variations?.device?.iphone ?? one.variations?.device?.other);
}

/** Reads a `Localizable.xcstrings` of Xcode. A key without a text in the language of the source is that text. */
function readStrings(text) {
  const { sourceLanguage: source = "en", strings } = object(JSON.parse(text)) ?? {};
  if (!object(strings)) throw new Error("no strings");
  const texts = Object.entries(strings).map(([key, one]) => [key, Object.fromEntries([[source, key],
    ...Object.entries(object(one)?.localizations ?? {}).map(([language, value]) => [language, textOf(value)]).filter(([, value]) => typeof value === "string")])]);
  return { source, language: source, strings: Object.fromEntries(texts) };
}

async function readIcon(file) {
  const blob = await new Promise((resolve) => createImageBitmap(file).then((image) => drawn(image).toBlob(resolve), () => resolve(null)));
  if (!blob) throw new Error("no image");
  return { icon: btoa(String.fromCharCode(...new Uint8Array(await blob.arrayBuffer()))) };
}

/** The form for the app of a push, which stays while it is used. `onChange()` is called after a change. */
export function appForm(record, onChange) {
  const bundle = bundleOf(record);
  if (!bundle) return null;
  const app = appOf(record);
  const change = (members) => {
    known.set(bundle, { ...appOf(record), ...members });
    if (members.strings) drawLanguages();
    if (!store(`app.${bundle}`, known.get(bundle))) showMessage("The browser cannot keep this; it is known until the page is reloaded", true);
    onChange();
  };
  const picker = (id, label, accept, read, advice) => {
    const input = h("input", { id, type: "file", accept, on: { change: async () => {
      const [file] = input.files;
      if (!file) return;
      if (file.size > MAX_FILE) return showMessage(`${file.name} is larger than ${MAX_FILE / 1e6} MB`, true);
      await read(file).then(change, () => showMessage(`${file.name} cannot be read: ${advice}`, true));
    } } });
    return [h("label", { for: id }, label), input];
  };
  const name = h("input", { id: "app-name", type: "text", value: app.name ?? "", placeholder: appName(record), autocomplete: "off", on: { change: () => change({ name: name.value.trim() }) } });
  const choice = h("div", { class: "app-languages" });
  const drawLanguages = () => {
    const [{ language }, languages] = [appOf(record), languagesOf(appOf(record))];
    const picked = h("select", { id: "app-language", on: { change: () => change({ language: picked.value }) } }, languages.map((one) => h("option", { value: one, selected: one === language }, one)));
    replace(choice, languages.length > 1 && [h("label", { for: "app-language" }, "Language"), picked]);
  };
  drawLanguages();
  return h("details", { class: "app-files" }, h("summary", {}, "App name, icon and texts"),
    h("p", { class: "quiet" }, "For ", visible(bundle, { limit: 100 }), ". They stay in this browser."),
    h("div", { class: "app-fields" }, h("label", { for: "app-name" }, "Name"), name, picker("app-icon", "Icon", "image/png,image/jpeg", readIcon, "choose a PNG or JPEG"),
      picker("app-strings", "Localizable.xcstrings", ".xcstrings,.json,application/json", async (file) => readStrings(await file.text()), "choose a string catalog of Xcode"),
      choice));
}
