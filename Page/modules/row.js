// One row of the list: cells in columns, or two lines if the list is narrow.
import { h } from "./dom.js";
import { ago, dayTime, fullTime, latency, numberOf, sinceStart, size, tail } from "./format.js";
import { icon } from "./icons.js";
import { outcomeText } from "./outcomes.js";
import { responseText, headline } from "./summary.js";
import { quoted } from "./terms.js";
import { visible } from "./visible.js";

/** The cells of a row; `attempts` are all attempts of the push if retries are grouped. Then the row shows the newest one that matches the search. */
export function rowCells(row, columns, attempts = null) {
  return columns.map((column) => h("span", { class: `cell is-cell-${column.id}` }, CELLS[column.id](row, attempts)));
}

const CELLS = {
  response: (row) => outcome(row),
  title: (row) => title(row),
  reason: (row) => reason(row),
  topic: (row) => topic(row),
  type: (row) => row.apns?.push_type && term("type", row.apns.push_type, visible(row.apns.push_type, { limit: 40 })),
  token: (row) => token(row),
  attempt: (row, attempts) => attemptChip(row, attempts, { isShort: true }),
  flags: (row) => flags(row),
  priority: (row) => row.apns?.priority ?? "",
  size: (row) => (row.request?.size ? h("span", { class: isNearLimit(row) ? "is-warning" : "" }, size(row.request.size.bytes)) : ""),
  latency: (row) => latency(row.served?.latency_ms),
  connection: (row) => row.connection?.id && term("connection", row.connection.id, row.connection.id),
  collapse: (row) => row.apns?.collapse_id && term("collapse", row.apns.collapse_id, visible(row.apns.collapse_id, { limit: 64 })),
  outcome: (row) => h("span", { class: `word is-${row.outcome}` }, outcomeText(row.outcome)),
  seq: (row) => numberOf(row),
  clock: (row) => h("time", { class: "row-clock", datetime: row.received_at, title: fullTime(row.received_at) }, dayTime(row.received_at)),
  since: (row) => h("span", { class: "row-clock", title: "Since the first push of the inbox" }, sinceStart(row.received_at)),
  time: (row) => time(row),
};

/** The two lines of a row in a narrow list. */
export function rowLines(row, attempts = null) {
  return [
    outcome(row), title(row), time(row),
    h("span", { class: "row-facts" },
      h("span", { class: `word is-${row.outcome}` }, outcomeText(row.outcome)), attemptChip(row, attempts), row.findings?.length > 0 && flags(row), reason(row), topic(row), token(row),
      isNearLimit(row) && h("span", { class: "chip is-finding" }, size(row.request.size.bytes))),
  ];
}

/**
 * A text that adds a condition to the search when it is clicked with Alt; any other click opens the push. It cannot have the focus, because rows
 * are options of a list; the details of the push have buttons for the same conditions.
 */
function term(field, value, content) {
  return h("span", { class: "row-term", data: { term: `${field}:${quoted(value)}` }, title: `${field}:${value} (Alt+click to search)` }, content);
}

function outcome(row) {
  return h("span", { class: `row-outcome is-${row.outcome}` }, icon(row.outcome), h("span", { class: "row-status" }, responseText(row)));
}

function title(row) {
  const { text, isOurs } = headline(row);
  return h("span", { class: isOurs ? "row-title is-ours" : "row-title" }, isOurs ? text : visible(text, { limit: 200 }));
}

function time(row) {
  return h("time", { class: "row-time", datetime: row.received_at, title: fullTime(row.received_at) }, ago(row.received_at));
}

function reason({ served }) {
  if (served?.reason) return h("span", { class: "row-reason" }, term("reason", served.reason, visible(served.reason, { limit: 60 })));
  return served?.reset ? h("span", { class: "row-reason" }, `reset ${served.reset}`) : null;
}

function topic(row) {
  return row.apns?.topic ? h("span", { class: "row-topic" }, term("topic", row.apns.topic, visible(row.apns.topic, { limit: 120 }))) : null;
}

function token(row) {
  const text = row.request?.device_token;
  return text ? h("span", { class: "row-token" }, term("token", text, visible(tail(text), { limit: 20 }))) : null;
}

/** The number of the attempt, of how many if they are grouped, and the last response if it is another; `isShort` hides the word that the column's name says. */
function attemptChip(row, attempts, { isShort = false } = {}) {
  const word = (text) => (isShort ? h("span", { class: "visually-hidden" }, text) : text);
  if (attempts?.length > 1) {
    const last = responseText(attempts.at(-1));
    return h("span", { class: "chip", title: `Attempt ${row.attempt} of ${attempts.at(-1).attempt}: ${attempts.map(responseText).join(" → ")}` },
      word("attempt "), row.attempt, isShort ? "/" : " of ", attempts.at(-1).attempt, last !== responseText(row) && ` → ${last}`);
  }
  if (!(row.attempt > 1)) return null;
  return h("span", { class: "chip" }, term("attempt", row.attempt, h("span", {}, word("attempt "), row.attempt)));
}

function flags(row) {
  const number = row.findings?.length ?? 0;
  return number > 0 && h("span", { class: "chip is-finding", title: row.findings.map(nameOf).join(", ") }, icon("flag"),
    number, h("span", { class: "visually-hidden" }, number === 1 ? " finding" : " findings"));
}

function isNearLimit(row) {
  return row.request?.size?.bytes > 0.9 * (row.request?.size?.limit ?? Infinity);
}

/** The name of a finding, given as a string or object. */
export function nameOf(finding) {
  return typeof finding === "string" ? finding : String(finding?.finding ?? finding?.name ?? "finding");
}

/** The label of a row for screen readers. */
export function rowLabel(row, attempts = null) {
  return [`${outcomeText(row.outcome)}, ${responseText(row)}`, row.served?.reason, headline(row).text.slice(0, 120), row.apns?.topic || "no topic",
    (row.attempt > 1 || attempts?.length > 1) && `attempt ${row.attempt}${attempts?.length > 1 ? ` of ${attempts.at(-1).attempt}` : ""}`, row.findings?.length > 0 && `findings: ${row.findings.map(nameOf).join(", ")}`, dayTime(row.received_at)].filter(Boolean).join(", ");
}
