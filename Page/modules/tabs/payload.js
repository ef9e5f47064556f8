// The payload, formatted. A click on a line shows its JSON pointer.
import { text } from "../api.js";
import { copy } from "../copy.js";
import { button, h, replace } from "../dom.js";
import { gauge } from "../gauge.js";
import { jsonLines, parse } from "../jsontext.js";
import { quoted } from "../terms.js";
import { visible } from "../visible.js";

// The documented keys of aps (Protocol.md, section 6.2); devices ignore others.
const KNOWN = new Set([
  "alert", "badge", "sound", "thread-id", "category", "content-available", "mutable-content", "target-content-id",
  "interruption-level", "relevance-score", "filter-criteria", "timestamp", "event", "content-state", "stale-date",
  "dismissal-date", "attributes-type", "attributes", "input-push-channel", "input-push-token", "content-changed", "url-args",
]);
const MAX_LINES = 2000;
const DEEPEST = 24;

export function payloadTab(record, actions) {
  const container = h("div", { class: "payload", role: "group", "aria-label": "Payload" });
  const pointer = h("div", { class: "pointer" }, h("span", { class: "quiet" }, "Click a line for its JSON pointer."));
  text(`/pushes/${record.seq}/payload`).then((body) => {
    if (record.request.payload_error) {
      replace(container, h("p", { class: "notice" }, record.request.payload_error),
        h("pre", { class: "code" }, visible(body, { lines: true })));
    } else {
      replace(container, lines(body, (line) => replace(pointer, pointerBar(line, actions))));
    }
  }, (error) => replace(container, h("p", { class: "notice" }, error.message)));
  return [gauge(record.request?.size), container, pointer];
}

function lines(body, choose) {
  const all = jsonLines(body) ?? [];
  const shown = all.slice(0, MAX_LINES).map((line) => {
    const isUnknown = /^\/aps\/[^/]+$/.test(line.pointer) && line.name !== null && !KNOWN.has(parse(line.name));
    const button = h("button", {
      type: "button", class: `json-line is-${line.kind}`, style: { "--depth": Math.min(line.depth, DEEPEST) },
      on: { click: () => {
        for (const other of button.parentElement.querySelectorAll("[aria-pressed=true]")) other.setAttribute("aria-pressed", "false");
        button.setAttribute("aria-pressed", "true");
        choose(line);
      } },
      "aria-pressed": "false",
    },
    line.name !== null && [h("span", { class: "json-name" }, visible(unescaped(line.name))), ": "],
    h("span", { class: `json-${line.kind}` }, line.kind === "string" ? visible(unescaped(line.text)) : line.text), line.after,
    isUnknown && h("span", { class: "chip is-finding" }, "not a key of aps"));
    return button;
  });
  if (all.length > MAX_LINES) shown.push(h("p", { class: "quiet" }, `… and ${all.length - MAX_LINES} more lines`));
  return shown;
}

/** Decodes the escapes of a JSON string (\u00e9 becomes é), except quotation marks and backslashes. */
function unescaped(token) {
  const value = parse(token);
  return typeof value === "string" ? `"${value.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"` : token;
}

function pointerBar(line, actions) {
  const pointer = line.pointer;
  const isValue = ["string", "number", "word"].includes(line.kind);
  return [
    h("code", { class: "wrap" }, pointer ? visible(pointer) : "(the whole payload)"),
    pointer && button("Copy pointer", () => copy(pointer, "the JSON pointer"), { class: "small" }),
    pointer && isValue && !/\s/.test(pointer)
      && button("Find similar pushes", () => actions.search(`payload.${pointer}:${quoted(parse(line.text))}`), { class: "small" }),
  ];
}
