// Compares pushes: the attempts of one, or two pushes with the difference of their payloads.
import { get, text } from "./api.js";
import { showError } from "./copy.js";
import { openDialog } from "./dialog.js";
import { h } from "./dom.js";
import { clockTime, count, latency, size } from "./format.js";
import { differences, isExact } from "./jsondiff.js";
import { headline, responseText } from "./summary.js";
import { visible } from "./visible.js";

const MAX_ATTEMPTS = 20;

const ROWS = [
  ["Time", (push) => clockTime(push.received_at)],
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

/** Shows two pushes side by side, and the difference of their payloads. */
export async function comparePushes(seqs) {
  try {
    const [one, other] = await Promise.all(seqs.map((seq) => get(`/pushes/${seq}`)));
    const bodies = await Promise.all(seqs.map((seq) => text(`/pushes/${seq}/payload`)));
    openDialog(`Compare #${one.seq} and #${other.seq}`, { isWide: true },
      h("div", { class: "dialog-body" }, sideBySide([one, other], [`#${one.seq} ${headline(one).text}`, `#${other.seq} ${headline(other).text}`]),
        headerDifferences(one, other), payloadDifferences(one, other, bodies)));
  } catch (error) {
    showError(error);
  }
}

/** Shows the attempts of a push side by side. */
export async function compareAttempts(seqs) {
  try {
    const pushes = await Promise.all(seqs.slice(0, MAX_ATTEMPTS).map((seq) => get(`/pushes/${seq}`)));
    const dialog = openDialog("Attempts side by side", { isWide: true }, h("div", { class: "dialog-body" }, sideBySide(pushes, pushes.map((push) => `Attempt ${push.attempt} (#${push.seq})`)),
      seqs.length > MAX_ATTEMPTS && h("p", { class: "quiet" }, `The first ${MAX_ATTEMPTS} of ${count(seqs.length)} attempts.`)));
    dialog.querySelector(".scroll-x").focus();
  } catch (error) {
    showError(error);
  }
}

function sideBySide(pushes, titles) {
  return h("div", { class: "scroll-x", tabindex: "0", role: "region", "aria-label": "Side by side" }, h("table", { class: "table comparison" },
    h("thead", {}, h("tr", {}, h("td", {}), titles.map((title) => h("th", { scope: "col" }, visible(title, { limit: 80 }))))),
    h("tbody", {}, ROWS.map(([name, of]) => {
      const values = pushes.map((push) => String(of(push)));
      const isDifferent = values.some((value) => value !== values[0]);
      return h("tr", { class: isDifferent ? "is-different" : "" }, h("th", { scope: "row" }, name, isDifferent && h("span", { class: "visually-hidden" }, " (different)")),
        values.map((value) => h("td", { class: "wrap" }, visible(value, { limit: 300 }))));
    }))));
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
  return h("div", { class: "scroll-x", tabindex: "0", role: "region", "aria-label": label }, h("table", { class: "table difference" },
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, place), h("th", { scope: "col" }, "Change"), h("th", { scope: "col" }, "First"), h("th", { scope: "col" }, "Second"))),
    h("tbody", {}, found.map(({ pointer, kind, before, after }) => h("tr", { class: `is-${kind}` },
      h("th", { scope: "row", class: "mono wrap" }, visible(nameOf(pointer), { limit: 400 })), h("td", {}, KINDS[kind]),
      h("td", { class: "mono wrap" }, kind === "added" ? "" : value(before)), h("td", { class: "mono wrap" }, kind === "removed" ? "" : value(after)))))));
}

function value(of) {
  return visible(JSON.stringify(of), { limit: 2000 });
}
