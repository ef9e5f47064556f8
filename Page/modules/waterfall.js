// The attempts of a push on one time axis: each response, the wait before the next attempt and the wait it should have had, the
// draw of a fault, and changes of the connection.
import { span, ticks } from "./charts/scale.js";
import { serverNow } from "./clock.js";
import { button, h } from "./dom.js";
import { dayTime } from "./format.js";
import { responseText } from "./summary.js";
import { visible } from "./visible.js";

/** The fields of the attempts. */
export const ATTEMPT_FIELDS = "seq,attempt,outcome,accepted,received_at,finished_at,served,fault.rule,fault.draw,fault.p,connection.id";
const FIRST_WAIT = 1000; // milliseconds after the first attempt, then twice as long each time
const LEAST = 6; // pixels
const LABEL = 84; // pixels of a label on the axis

/** The wait before the attempt after number `attempt`, in milliseconds, if its response can be repeated; null if it cannot. */
function advisedWait({ outcome, served, attempt }) {
  const status = served?.status ?? 0;
  return outcome === "rejected" && (status >= 500 || [408, 425, 429].includes(status)) ? FIRST_WAIT * 2 ** (attempt - 1) : null;
}

/** The rows, in `width` pixels; null for a single attempt. `open(seq)` is called for a click. */
export function waterfall(attempts, { chosen, open, width }) {
  if (attempts.length < 2) return null;
  const endOf = (one) => (one.finished_at ? Date.parse(one.finished_at) : serverNow());
  const [from, until] = [Date.parse(attempts[0].received_at), Math.max(...attempts.map(endOf))];
  const length = Math.max(1, until - from);
  const at = (time) => ((time - from) / length) * (width - LEAST);
  return h("section", { class: "waterfall", "aria-label": "Attempts over time" },
    h("h3", {}, `Attempts in ${span(length)}`),
    h("div", { class: "waterfall-axis", "aria-hidden": "true" }, ticks(from, until, width).filter(({ time }) => at(time) < width - LABEL).map(({ time, text }) => h("span", { style: { left: `${at(time)}px` } }, text))),
    h("ol", {}, attempts.map((one, index) => row(one, attempts[index - 1], { at, endOf, chosen, open }))));
}

function row(one, before, { at, endOf, chosen, open }) {
  const start = Date.parse(one.received_at);
  const left = at(start);
  const facts = [before && waitText(start - endOf(before), advisedWait(before)), one.fault?.rule && `rule ${one.fault.rule}${typeof one.fault.draw === "number" ? `, draw ${one.fault.draw.toFixed(3)} < ${one.fault.p}` : ""}`,
    before && before.connection?.id !== one.connection?.id && `new connection ${one.connection?.id}`, one.served?.goaway && "GOAWAY", one.served?.closed && `connection ${one.served.closed}`].filter(Boolean);
  const advised = before ? advisedWait(before) : null;
  const waited = before ? start - endOf(before) : 0;
  return h("li", { "aria-current": one.seq === chosen ? "true" : null },
    h("div", { class: "waterfall-line" },
      before && h("span", { class: `waterfall-wait${advised !== null && waited < advised / 2 ? " is-short" : ""}`, style: { left: `${at(endOf(before))}px`, width: `${Math.max(1, left - at(endOf(before)))}px` } }),
      h("span", { class: `waterfall-bar is-${one.outcome}`, style: { left: `${left}px`, width: `${Math.max(LEAST, at(endOf(one)) - left)}px` } })),
    h("p", { class: "waterfall-text" }, button(`${one.attempt}: ${responseText(one)} ${one.served?.reason ?? ""}`.trim(), () => open(one.seq), { class: `link is-${one.outcome}`, title: `Open attempt ${one.attempt}, ${dayTime(one.received_at)}` }),
      h("span", { class: "quiet" }, visible(facts.join(" · "), { limit: 200 }))));
}

function waitText(waited, advised) {
  const text = `waited ${span(Math.max(0, waited))}`;
  return advised === null ? text : `${text}, advised ${span(advised)}${waited < advised / 2 ? ": too early" : ""}`;
}
