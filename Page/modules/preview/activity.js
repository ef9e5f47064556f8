// The preview of a Live Activity: the data for the app's views.
import { h } from "../dom.js";
import { serverNow } from "../clock.js";
import { agoWords, fromSeconds, fullTime } from "../format.js";
import { alertParts, apsOf, object } from "../summary.js";
import { asShown, visible } from "../visible.js";
import { appName } from "./app.js";

const WORDS = { start: "starts", update: "updated", end: "ended" };
const MAX_ENTRIES = 8;

export function activityCard(record) {
  const aps = apsOf(record) ?? {};
  const state = object(aps["content-state"]);
  const parts = alertParts(aps.alert);
  const isStale = typeof aps["stale-date"] === "number" && aps["stale-date"] * 1000 < serverNow();
  return h("article", { class: "note-card activity-card" },
    h("div", { class: "note-line" }, h("span", { class: "note-title" }, asShown(typeof aps["attributes-type"] === "string" ? aps["attributes-type"] : appName(record))),
      h("span", { class: "note-when" }, isStale ? "stale" : WORDS[aps.event] ?? "?")),
    (parts.title || parts.body) && h("div", { class: "note-body" }, asShown([parts.title?.text ?? parts.title?.key, parts.body?.text ?? parts.body?.key].filter(Boolean).join(" — "))),
    state && h("dl", { class: "activity-state" }, members(state)));
}

/** The Live Activity in the Dynamic Island: its first values beside the camera. */
export function island(record) {
  const state = Object.values(object(apsOf(record)?.["content-state"]) ?? {}).filter((value) => ["string", "number"].includes(typeof value));
  return h("article", { class: "island" }, h("span", {}, visible(String(state[0] ?? appName(record)), { limit: 14 })), h("span", { class: "island-camera", "aria-hidden": "true" }), h("span", {}, visible(String(state[1] ?? ""), { limit: 14 })));
}

function members(value) {
  const entries = Object.entries(value);
  const rows = entries.slice(0, MAX_ENTRIES).map(([name, one]) => h("div", {}, h("dt", {}, visible(name, { limit: 60 })),
    h("dd", {}, visible(typeof one === "string" ? one : JSON.stringify(one), { limit: 120 }))));
  if (entries.length > MAX_ENTRIES) rows.push(h("div", {}, h("dt", {}, "…"), h("dd", {}, `${entries.length - MAX_ENTRIES} more`)));
  return rows;
}

/** Event, dates and attributes as names and values. */
export function activityFacts(aps) {
  const rows = [["Event", aps.event === undefined ? "missing" : visible(String(aps.event))]];
  const date = (name, key, otherwise) => {
    const time = fromSeconds(aps[key]);
    if (time) rows.push([name, `${fullTime(time)}, ${agoWords(time)}`]);
    else if (aps[key] !== undefined) rows.push([name, ["not a date in seconds: ", visible(JSON.stringify(aps[key]))]]);
    else if (otherwise) rows.push([name, otherwise]);
  };
  date("Timestamp", "timestamp", "missing");
  date("Stale from", "stale-date", null);
  date("Dismissal", "dismissal-date", aps.event === "end" ? "up to 4 hours after the end" : null);
  if (aps["attributes-type"] !== undefined) rows.push(["Attributes type", visible(String(aps["attributes-type"]))]);
  if (object(aps.attributes)) rows.push(["Attributes", h("code", { class: "wrap" }, visible(JSON.stringify(aps.attributes), { limit: 600 }))]);
  if (aps["relevance-score"] !== undefined) rows.push(["Relevance", visible(JSON.stringify(aps["relevance-score"]))]);
  if (aps["input-push-channel"] !== undefined) rows.push(["Updates by", ["channel ", visible(String(aps["input-push-channel"]))]]);
  return rows;
}
