// A small line of counts over time, without axes.
import { svg } from "../dom.js";

/** `label` describes the line to screen readers. */
export function sparkline(counts, label) {
  const highest = Math.max(1, ...counts);
  const step = 120 / Math.max(1, counts.length);
  const d = counts.map((number, index) => (number ? `M${(index * step).toFixed(1)} 28h${Math.max(1, step - 1).toFixed(1)}v${(-Math.max(2, (number / highest) * 26)).toFixed(1)}h${(-Math.max(1, step - 1)).toFixed(1)}z` : "")).join("");
  return svg("svg", { class: "sparkline", viewBox: "0 0 120 29", role: "img", "aria-label": label },
    svg("path", { d: `${d}M0 28.500h120`, fill: "currentColor", stroke: "currentColor", "stroke-width": ".5" }));
}
