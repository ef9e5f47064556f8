// Compares pushes: the attempts of one, or two pushes with the difference of their payloads.
import { get, text } from "./api.js";
import { showError } from "./copy.js";
import { openDialog } from "./dialog.js";
import { h, replace, table } from "./dom.js";
import { count, dayTime, latency, pushes as pushCount, size } from "./format.js";
import { differences, isExact } from "./jsondiff.js";
import { headline, responseText } from "./summary.js";
import { filterOf } from "./terms.js";
import { visible } from "./visible.js";

/** The largest number of pushes that are compared at once. */
export const MAX_COMPARED = 20;

const ROWS = [
  ["Time", (push) => dayTime(push.received_at)],
  ["Response", (push) => `${responseText(push)} ${push.served?.reason ?? ""}`.trim()],
  ["Outcome", (push) => push.outcome],
  ["Accepted by APNs", (push) => (push.accepted ? "yes" : "no")],
  ["APNs' verdict", (push) => (push.verdict ? `${push.verdict.status} ${push.verdict.reason ?? ""}`.trim() : "not validated")],
  ["Fault", (push) => (push.fault ? `${push.fault.rule}: ${push.fault.action}` : "none")],
  ["Latency", (push) => latency(push.served?.latency_ms) || "–"],
  ["Attempt", (push) => push.attempt],
  ["Connection", (push) => `${push.connection?.id ?? "–"}, stream ${push.connection?.stream ?? "–"}`],
  ["apns-id", (push) => push.apns?.id ?? "–"],
  ["Topic", (push) => push.apns?.topic ?? "–"],
  ["Push type", (push) => push.apns?.push_type ?? "–"],
  ["Priority", (push) => push.apns?.priority ?? "–"],
  ["Expiration", (push) => push.apns?.expiration ?? "–"],
  ["Collapse id", (push) => push.apns?.collapse_id ?? "–"],
  ["Device token", (push) => push.request?.device_token ?? "–"],
  ["Key", (push) => push.auth?.key_id ?? push.auth?.kind ?? "–"],
  ["Token issued", (push) => push.auth?.issued_at ?? "–"],
  ["Payload size", (push) => (push.request?.size ? size(push.request.size.bytes) : "–")],
  ["Findings", (push) => (push.findings?.length ? push.findings.map((one) => (typeof one === "string" ? one : one.finding)).join(", ") : "none")],
];

/** Shows pushes side by side; of two also how their headers and payloads differ. */
export async function comparePushes(seqs, { title = null, nameOf = (push) => `#${push.seq} ${headline(push).text}` } = {}) {
  const compared = seqs.slice(0, MAX_COMPARED);
  try {
    const pushes = await Promise.all(compared.map((seq) => get(`/pushes/${seq}`)));
    const bodies = pushes.length === 2 ? await Promise.all(compared.map((seq) => text(`/pushes/${seq}/payload`))) : null;
    const dialog = openDialog(title ?? `Compare ${pushes.length === 2 ? `#${pushes[0].seq} and #${pushes[1].seq}` : pushCount(pushes.length)}`, { isWide: true },
      h("div", { class: "dialog-body" }, sideBySide(pushes, pushes.map(nameOf)), bodies && [headerDifferences(...pushes), payloadDifferences(...pushes, bodies)],
        seqs.length > compared.length && h("p", { class: "quiet" }, `The first ${compared.length} of ${count(seqs.length)}.`)));
    dialog.querySelector(".scroll-x").focus();
  } catch (error) {
    showError(error);
  }
}

/** Shows the attempts of a push side by side. */
export function compareAttempts(seqs) {
  return comparePushes(seqs, { title: "Attempts side by side", nameOf: (push) => `Attempt ${push.attempt} (#${push.seq})` });
}

function sideBySide(pushes, titles) {
  return comparison("Side by side", titles, ROWS.map(([name, of]) => [name, pushes.map((push) => String(of(push)))]));
}

/** A table with a column for each title, and a field that hides the rows whose values are equal. */
export function comparison(label, titles, rows) {
  const box = table(label, ["", ...titles.map((title) => visible(title, { limit: 80 }))], rows.map(([name, values]) => {
    const isDifferent = values.some((value) => value !== values[0]);
    return h("tr", { class: isDifferent ? "is-different" : "" }, h("th", { scope: "row" }, name, isDifferent && h("span", { class: "visually-hidden" }, " (different)")),
      values.map((value) => h("td", { class: "wrap" }, visible(value, { limit: 300 }))));
  }), { kind: "comparison only-different" });
  const only = h("input", { type: "checkbox", checked: true, on: { change: () => box.firstChild.classList.toggle("only-different", only.checked) } });
  const isEqual = rows.every(([, values]) => values.every((value) => value === values[0]));
  return h("div", {}, h("label", { class: "choice-line" }, only, h("span", {}, "Only differences")), isEqual && h("p", { class: "notice" }, "All values are equal."), box);
}

/** Compares the pushes of two searches: how many there are, their responses and what a provider waited for. */
export function compareSearches(q) {
  const field = (id, value) => {
    const input = h("input", { id, type: "search", class: "mono", autocomplete: "off", spellcheck: "false" });
    input.value = value;
    return input;
  };
  const fields = [field("compare-first", q), field("compare-second", "")];
  const result = h("div", { role: "status" });
  let newest = null;
  const load = async () => {
    const request = (newest = {});
    const wanted = fields.map((one) => one.value.trim());
    try {
      const both = await Promise.all(wanted.map((q) => get("/stats", filterOf(q))));
      if (newest === request) replace(result, comparison("Searches side by side", wanted.map((q) => q || "all pushes"), statisticRows(both)));
    } catch (error) {
      if (newest === request) replace(result, h("p", { class: "notice is-error" }, visible([error.message, error.hint].filter(Boolean).join(" — "), { limit: 300 })));
    }
  };
  openDialog("Compare searches", { isWide: true }, h("div", { class: "dialog-body" },
    h("form", { class: "fields", on: { submit: (event) => { event.preventDefault(); load(); } } }, fields.map((one, index) => h("div", { class: "field" }, h("label", { for: one.id }, index ? "Second search" : "First search"), one)),
      h("div", { class: "field-row" }, h("button", { type: "submit", class: "primary" }, "Compare"))),
    h("p", { class: "quiet" }, "A search can also be a connection, as in connection:c1."), result));
  fields[1].focus();
  load();
}

/** The rows of a comparison of statistics. */
export function statisticRows(both) {
  const row = (name, of) => [name, both.map((stats) => String(of(stats)))];
  const values = (member, title) => [...new Set(both.flatMap((stats) => Object.keys(stats[member].counts)))].map((value) => row(`${title} ${value}`, (stats) => count(stats[member].counts[value] ?? 0)));
  return [
    row("Pushes", (stats) => count(stats.matched)), row("Accepted", (stats) => (stats.matched ? `${Math.round((stats.accepted / stats.matched) * 1000) / 10} %` : "–")),
    row("Retries", (stats) => count(stats.retries)), row("Device tokens", (stats) => count(stats.device_tokens)), row("Connections", (stats) => count(stats.connections)),
    row("Time to success, median", (stats) => latency(stats.time_to_acceptance.median_ms) || "–"), row("Wait before a retry, median", (stats) => latency(stats.retry_delay.median_ms) || "–"),
    ...values("status", "Response"), ...values("reason", "Reason"), ...values("outcome", "Outcome"), ...values("rule", "Rule"),
  ];
}

/** The request headers as a JSON object; repeated ones as an array. The token's signature is not stored. */
function headersOf(push) {
  const headers = {};
  for (const [name, value] of push.request?.headers ?? []) {
    if (Object.hasOwn(headers, name)) headers[name] = [headers[name], value].flat();
    else headers[name] = value;
  }
  return headers;
}

function headerDifferences(one, other) {
  return h("section", {}, h("h3", {}, "Headers"), differenceTable("Header differences", differences(headersOf(one), headersOf(other)), "Header", (pointer) => pointer.slice(1).replaceAll("~1", "/").replaceAll("~0", "~"),
    "The headers are equal."));
}

function payloadDifferences(one, other, [before, after]) {
  const content = () => {
    if (one.request.payload_error || other.request.payload_error) {
      return h("p", { class: "notice" }, before === after ? "The payloads are equal." : "The payloads differ, and at least one is not JSON: ", before !== after && visible(one.request.payload_error ?? other.request.payload_error));
    }
    const equal = isExact(before) && isExact(after) ? "The payloads have equal values; white space or the order of members differs."
      : "The payloads differ only in what the page cannot compare: white space, the order or repetition of members, escapes, or the notation and last digits of numbers.";
    return differenceTable("Payload differences", differences(one.request.payload, other.request.payload), "JSON pointer", (pointer) => pointer || "(the whole payload)",
      before === after ? "The payloads are equal, byte for byte." : equal);
  };
  return h("section", {}, h("h3", {}, "Payload"), content());
}

const KINDS = { added: "+ added", removed: "− removed", changed: "≠ changed" };

function differenceTable(label, found, place, nameOf, equal) {
  if (!found.length) return h("p", { class: "notice" }, equal);
  return table(label, [place, "Change", "First", "Second"], found.map(({ pointer, kind, before, after }) => h("tr", { class: `is-${kind}` },
    h("th", { scope: "row", class: "mono wrap" }, visible(nameOf(pointer), { limit: 400 })), h("td", {}, KINDS[kind]),
    h("td", { class: "mono wrap" }, kind === "added" ? "" : value(before, kind === "changed" ? after : null)), h("td", { class: "mono wrap" }, kind === "removed" ? "" : value(after, kind === "changed" ? before : null)))), { kind: "difference" });
}

/** A value; of two texts the part in which they differ is marked. */
function value(of, other = null) {
  const text = JSON.stringify(of);
  if (typeof of !== "string" || typeof other !== "string") return visible(text, { limit: 2000 });
  const [one, two] = [[...text], [...JSON.stringify(other)]];
  const shortest = Math.min(one.length, two.length);
  let start = 0;
  while (start < shortest && one[start] === two[start]) start += 1;
  let end = 0;
  while (end < shortest - start && one[one.length - 1 - end] === two[two.length - 1 - end]) end += 1;
  const part = (from, until) => visible(one.slice(from, until).join(""), { limit: 2000 });
  return [part(0, start), h("mark", {}, part(start, one.length - end)), part(one.length - end, one.length)];
}
