// One row of the list: cells in columns, or two lines if the list is narrow.
import { h } from "./dom.js";
import { ago, clockTime, fullTime, latency, numberOf, sinceStart, size, tail } from "./format.js";
import { icon } from "./icons.js";
import { outcomeText } from "./outcomes.js";
import { responseText, headline } from "./summary.js";
import { quoted } from "./terms.js";
import { visible } from "./visible.js";

/** The cells of a row; `attempts` are all attempts of the push if retries are grouped. */
export function rowCells(row, columns, attempts = null, isSearch = false) {
  const last = lastAttempt(row, attempts, isSearch);
  return columns.map((column) => h("span", { class: `cell is-cell-${column.id}` }, CELLS[column.id](row, last, attempts, isSearch)));
}

/**
 * The attempt whose response a row shows: the last of grouped attempts. In a search it is the one that was found, because
 * another one need not match.
 */
function lastAttempt(row, attempts, isSearch) {
  return isSearch ? row : attempts?.at(-1) ?? row;
}

const CELLS = {
  response: (row, last) => outcome(last),
  title: (row) => title(row),
  reason: (row, last) => reason(last),
  topic: (row) => topic(row),
  type: (row) => row.apns?.push_type && term("type", row.apns.push_type, visible(row.apns.push_type, { limit: 40 })),
  token: (row) => token(row),
  attempt: (row, last, attempts, isSearch) => attemptChip(row, attempts, { isShort: true, isSearch }),
  flags: (row) => flags(row),
  priority: (row) => row.apns?.priority ?? "",
  size: (row) => (row.request?.size ? h("span", { class: isNearLimit(row) ? "is-warning" : "" }, size(row.request.size.bytes)) : ""),
  latency: (row, last) => latency(last.served?.latency_ms),
  connection: (row) => row.connection?.id && term("connection", row.connection.id, row.connection.id),
  collapse: (row) => row.apns?.collapse_id && term("collapse", row.apns.collapse_id, visible(row.apns.collapse_id, { limit: 64 })),
  outcome: (row, last) => h("span", { class: `word is-${last.outcome}` }, outcomeText(last.outcome)),
  seq: (row) => numberOf(row),
  clock: (row) => h("time", { class: "row-clock", datetime: row.received_at, title: fullTime(row.received_at) }, clockTime(row.received_at)),
  since: (row) => h("span", { class: "row-clock", title: "Since the first push of the inbox" }, sinceStart(row.received_at)),
  time: (row) => time(row),
};

/** The two lines of a row in a narrow list. */
export function rowLines(row, attempts = null, isSearch = false) {
  const last = lastAttempt(row, attempts, isSearch);
  const chip = attemptChip(row, attempts, { isSearch });
  return [
    outcome(last), title(row), time(row),
    h("span", { class: "row-facts" },
      h("span", { class: `word is-${last.outcome}` }, outcomeText(last.outcome)), chip, row.findings?.length > 0 && flags(row), reason(last), topic(row), token(row),
      isNearLimit(row) && h("span", { class: "chip is-finding" }, size(row.request.size.bytes))),
  ];
}

/**
 * A text that adds a condition to the search when it is clicked. It cannot have the focus, because rows are options of a
 * list; the details of the push have buttons for the same conditions.
 */
function term(field, value, content) {
  return h("span", { class: "row-term", data: { term: `${field}:${quoted(value)}` }, title: `Search ${field}:${value}` }, content);
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

function reason(last) {
  if (last.served?.reason) return h("span", { class: "row-reason" }, term("reason", last.served.reason, visible(last.served.reason, { limit: 60 })));
  return last.served?.reset ? h("span", { class: "row-reason" }, `reset ${last.served.reset}`) : null;
}

function topic(row) {
  return row.apns?.topic ? h("span", { class: "row-topic" }, term("topic", row.apns.topic, visible(row.apns.topic, { limit: 120 }))) : null;
}

function token(row) {
  const text = row.request?.device_token;
  return text ? h("span", { class: "row-token" }, term("token", text, visible(tail(text), { limit: 20 }))) : null;
}

/** The number of the attempt, or of grouped attempts; `isShort` hides the word that the column's name says. */
function attemptChip(row, attempts, { isShort = false, isSearch = false } = {}) {
  const word = (text) => (isShort ? h("span", { class: "visually-hidden" }, text) : text);
  if (attempts?.length > 1) return h("span", { class: "chip", title: attempts.map(responseText).join(" → ") }, attempts.length, word(" attempts"), isSearch && responseText(attempts.at(-1)) !== responseText(row) && ` → ${responseText(attempts.at(-1))}`);
  if (attempts || !(row.attempt > 1)) return null;
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
export function rowLabel(row) {
  return [`${outcomeText(row.outcome)}, ${responseText(row)}`, row.served?.reason, headline(row).text.slice(0, 120), row.apns?.topic || "no topic",
    row.attempt > 1 && `attempt ${row.attempt}`, row.findings?.length > 0 && `findings: ${row.findings.map(nameOf).join(", ")}`, clockTime(row.received_at)].filter(Boolean).join(", ");
}
