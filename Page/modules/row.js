// One row of the list.
import { h } from "./dom.js";
import { ago, fullTime, size, tail } from "./format.js";
import { icon } from "./icons.js";
import { responseText, headline } from "./summary.js";
import { visible } from "./visible.js";

/** The content of a row; `attempts` are all attempts of the push if retries are grouped. */
export function rowContent(row, attempts = null) {
  const title = headline(row);
  const last = attempts?.at(-1) ?? row;
  return [
    h("span", { class: `row-outcome is-${last.outcome}` }, icon(last.outcome), h("span", { class: "row-status" }, responseText(last))),
    h("span", { class: title.isOurs ? "row-title is-ours" : "row-title" },
      title.isOurs ? title.text : visible(title.text, { limit: 200 })),
    h("time", { class: "row-time", datetime: row.received_at, title: fullTime(row.received_at) }, ago(row.received_at)),
    h("span", { class: "row-facts" }, facts(row, last, attempts)),
  ];
}

function facts(row, last, attempts) {
  const topic = row.apns?.topic;
  const token = row.request?.device_token;
  const findings = row.findings?.length ?? 0;
  const detail = last.served?.reason ?? (last.served?.reset ? `reset ${last.served.reset}` : null);
  return [
    h("span", { class: `word is-${last.outcome}` }, last.outcome),
    attempts && attempts.length > 1 && h("span", { class: "chip" }, `${attempts.length} attempts`),
    !attempts && row.attempt > 1 && h("span", { class: "chip" }, `attempt ${row.attempt}`),
    findings > 0 && h("span", { class: "chip is-finding", title: row.findings.map(nameOf).join(", ") }, icon("flag"),
      findings === 1 ? "1 finding" : `${findings} findings`),
    detail && h("span", { class: "row-reason" }, detail),
    topic && h("span", { class: "row-topic" }, visible(topic, { limit: 120 })),
    token && h("span", { class: "row-token" }, tail(token)),
    row.request?.size?.bytes > 0.9 * (row.request?.size?.limit ?? Infinity)
      && h("span", { class: "chip is-finding" }, size(row.request.size.bytes)),
  ];
}

/** The name of a finding, given as a string or object. */
export function nameOf(finding) {
  return typeof finding === "string" ? finding : String(finding?.finding ?? finding?.name ?? "finding");
}

/** The label of a row for screen readers. */
export function rowLabel(row) {
  return `${row.outcome}, ${responseText(row)}, ${headline(row).text.slice(0, 120)}, ${row.apns?.topic ?? "no topic"}`;
}
