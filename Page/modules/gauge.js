// The size of a payload relative to the limit of its push type.
import { h } from "./dom.js";
import { count } from "./format.js";

const NEAR = 0.9;

/** A bar with its description; null for a push without a size. */
export function gauge(size) {
  if (!size || typeof size.bytes !== "number") return null;
  const share = size.limit ? size.bytes / size.limit : 0;
  const level = share > 1 ? "over" : share >= NEAR ? "near" : "fine";
  const description = `${count(size.bytes)} of ${count(size.limit)} bytes (${Math.round(share * 100)} %)`;
  const more = share > 1 ? `, ${count(size.bytes - size.limit)} too many` : share >= NEAR ? ", nearly full" : "";
  return h("div", { class: `gauge is-${level}` },
    h("div", {
      class: "gauge-bar", role: "meter", "aria-label": "Payload size", "aria-valuemin": "0", "aria-valuemax": size.limit,
      "aria-valuenow": Math.min(size.bytes, size.limit), "aria-valuetext": description + more,
    }, h("div", { class: "gauge-fill", style: { width: `${Math.min(100, share * 100)}%` } })),
    h("span", { class: "gauge-text" }, description, more));
}
