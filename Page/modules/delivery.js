// The way of a push in one line, with times: received, checked, rule, answered, and what became of it on the device.
import { h } from "./dom.js";
import { dayTime, latency } from "./format.js";
import { isSuccess, responseText } from "./summary.js";
import { visible } from "./visible.js";

/** The steps: `{name, value, title, isGood}`, where `isGood` is null for a step without a judgment. */
function steps(record) {
  const { verdict, fault, served = {}, delivery } = record;
  return [
    { name: "received", value: dayTime(record.received_at), title: `on ${record.connection?.id ?? "an unknown connection"}`, isGood: null },
    { name: "checked", value: verdict ? `${verdict.status} ${verdict.reason ?? ""}`.trim() : "not checked", isGood: verdict ? isSuccess(verdict.status) : null },
    fault && { name: "rule", value: `${fault.rule}: ${fault.action}`, isGood: false },
    { name: "answered", value: responseText(record), isGood: record.outcome === "pending" ? null : isSuccess(served.status),
      title: record.finished_at && `${dayTime(record.finished_at)}, after ${latency(served.latency_ms) || "an unknown time"}` },
    delivery ? { name: "device", value: delivery, isGood: delivery.startsWith("Delivered") ? true : delivery.startsWith("Discarded") ? false : null }
      : record.accepted && { name: "device", value: "not registered", isGood: null },
  ].filter(Boolean);
}

export function deliveryLine(record) {
  return h("ol", { class: "way", "aria-label": "Delivery" }, steps(record).map(({ name, value, title, isGood }) =>
    h("li", { class: `is-${name}${isGood === null ? "" : isGood ? " is-good" : " is-bad"}`, title: title || value }, h("span", { class: "quiet" }, name), h("strong", {}, visible(value, { limit: 80 })))));
}
