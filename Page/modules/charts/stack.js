// The columns of counts over time, stacked by outcome.
import { svg } from "../dom.js";
import { OUTCOMES } from "../outcomes.js";

const LEAST = 1.5; // pixels of a count

/** The outcomes that occur in `counts`, which has a list of counts for each. */
export function occurring(counts) {
  return OUTCOMES.filter((name) => counts[name]?.some(Boolean));
}

/** The largest sum of a column; at least 1. */
export function largest(counts) {
  return sums(counts).reduce((one, other) => Math.max(one, other), 1);
}

function sums(counts) {
  return Object.values(counts).reduce((total, list) => list.map((number, index) => number + (total[index] ?? 0)), []);
}

/** A path for each outcome: columns of `width`, of which number `index` begins at `left(index)`, `highest` pixels high at most, on the line `bottom`. */
export function stack(counts, { left, width, highest, bottom }) {
  const scale = highest / largest(counts);
  const tops = sums(counts).map(() => bottom);
  return occurring(counts).map((name) => {
    const d = counts[name].map((number, index) => {
      if (!number) return "";
      const height = Math.max(LEAST, number * scale);
      tops[index] -= height;
      return `M${left(index).toFixed(1)} ${tops[index].toFixed(1)}h${width.toFixed(1)}v${height.toFixed(1)}h${(-width).toFixed(1)}z`;
    }).join("");
    return svg("path", { d, class: `is-${name}`, fill: "currentColor" });
  });
}
