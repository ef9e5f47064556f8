// The preview of an alert.
import { h } from "../dom.js";
import { serverNow } from "../clock.js";
import { icon } from "../icons.js";
import { alertParts, apsOf, object } from "../summary.js";
import { asShown, hasHidden, visible } from "../visible.js";
import { appIcon, appName, localized } from "./app.js";

const LEVELS = {
  passive: "passive: added to the list silently, the screen stays off", active: "active: lights the screen, may play a sound",
  "time-sensitive": "time-sensitive: also breaks through a focus",
  critical: "critical: sounds even when muted, if the app has the entitlement",
};

/** A notification. `when`: how long ago it arrived, in the device's words. Its badge is that of the icon on the Home Screen. */
export function banner(record, when = "now") {
  const aps = apsOf(record) ?? {};
  const parts = alertParts(aps.alert);
  const level = aps["interruption-level"];
  return h("article", { class: "note-card" },
    appIcon(record),
    h("div", { class: "note-text" },
      (level === "time-sensitive" || level === "critical") && h("span", { class: "note-level" }, level === "critical" ? "Critical" : "Time sensitive"),
      h("div", { class: "note-line" }, h("span", { class: "note-title" }, shown(record, parts.title) ?? asShown(appName(record))),
        h("span", { class: "note-when" }, when)),
      parts.subtitle && h("div", { class: "note-subtitle" }, shown(record, parts.subtitle)),
      parts.body && h("div", { class: "note-body" }, shown(record, parts.body))));
}

/** The notification opened: its whole text, a place for the attachment, and the buttons of its category. */
export function longLook(record) {
  const aps = apsOf(record) ?? {};
  const parts = alertParts(aps.alert);
  return h("div", { class: "long-look" },
    h("article", { class: "note-card is-long" }, h("div", { class: "note-text" },
      h("div", { class: "note-line" }, h("span", { class: "note-app" }, appIcon(record), asShown(appName(record))), h("span", { class: "note-when" }, "now")),
      aps["mutable-content"] === 1 && h("div", { class: "note-attachment" }, "attachment, if the app's extension adds one"),
      parts.title && h("div", { class: "note-title" }, shown(record, parts.title)), parts.subtitle && h("div", { class: "note-subtitle" }, shown(record, parts.subtitle)),
      parts.body && h("div", { class: "note-body" }, shown(record, parts.body)))),
    typeof aps.category === "string" && aps.category && h("ul", { class: "note-actions" }, h("li", {}, "actions of the category ", visible(aps.category, { limit: 60 }))));
}

/** The app's icon on the Home Screen, with its badge. */
export function homeIcon(record) {
  const badge = apsOf(record)?.badge;
  const hasBadge = Number.isInteger(badge) && badge > 0;
  return h("div", { class: "home-icons" }, Array.from({ length: 12 }, (_, index) => (index === 5
    ? h("span", { class: "home-app" }, appIcon(record, hasBadge && h("span", { class: "app-badge" }, badge > 9999 ? "9999+" : badge)),
      h("span", { class: "home-name" }, asShown(appName(record), 12)), h("span", { class: "visually-hidden" }, hasBadge ? `, badge ${badge}` : ", no badge"))
    : h("span", { class: "home-app is-other", "aria-hidden": "true" }, h("span", { class: "app-icon" })))));
}

/** How long ago a notification arrived, as a device says it. */
export function deviceTime(text) {
  const minutes = Math.floor((serverNow() - Date.parse(text)) / 60000);
  if (!(minutes >= 1)) return "now";
  if (minutes < 60) return `${minutes}m ago`;
  return minutes < 1440 ? `${Math.floor(minutes / 60)}h ago` : new Date(text).toLocaleDateString("en-GB", { day: "numeric", month: "short" });
}

/** A part's text, that of its localization key if the page has the app's texts, or the key with its arguments. */
function shown(record, part) {
  if (!part) return null;
  const text = part.key ? localized(record, part) : part.text;
  if (text !== null) return asShown(text);
  return h("span", { class: "loc-key" }, visible(part.key), part.args.length > 0 && ["(", visible(part.args.map(String).join(", ")), ")"]);
}

/** Further properties of an alert as names and values. */
export function alertFacts(aps) {
  const rows = [];
  const parts = alertParts(aps.alert);
  for (const [name, part] of [["Title", parts.title], ["Subtitle", parts.subtitle], ["Body", parts.body]]) {
    if (!part) continue;
    if (part.key) rows.push([name, [h("code", {}, visible(part.key)), part.args.length ? [" with ", visible(part.args.map((arg) => JSON.stringify(arg)).join(", "))] : " without arguments"]]);
    else if (hasHidden(part.text)) rows.push([name, [visible(part.text), h("span", { class: "chip is-finding" }, "hidden characters")]]);
  }
  if (aps.badge !== undefined) rows.push(["Badge", aps.badge === 0 ? "0, removed" : JSON.stringify(aps.badge)]);
  if (aps.sound !== undefined) rows.push(["Sound", sound(aps.sound)]);
  const level = aps["interruption-level"];
  rows.push(["Interruption", level === undefined ? "active (default)" : LEVELS[level] ?? ["unknown: ", visible(JSON.stringify(level)), ", treated as active"]]);
  if (aps["thread-id"] !== undefined) rows.push(["Thread", visible(String(aps["thread-id"]))]);
  for (const key of ["category", "target-content-id", "filter-criteria", "relevance-score"]) {
    if (aps[key] !== undefined) rows.push([key, visible(typeof aps[key] === "string" ? aps[key] : JSON.stringify(aps[key]))]);
  }
  if (object(aps.alert)?.["launch-image"]) rows.push(["Launch image", visible(String(aps.alert["launch-image"]))]);
  return rows;
}

function sound(value) {
  if (typeof value === "string") return [icon("bell"), " ", visible(value)];
  const sound = object(value);
  if (!sound) return "neither a name nor an object: ignored";
  return [icon("bell"), " ", visible(String(sound.name ?? "default")), sound.critical === 1 ? ", critical" : "",
    typeof sound.volume === "number" ? `, volume ${sound.volume}` : ""];
}
