// The waits before retries as bars: how many were how long.
import { h } from "../dom.js";
import { count, latency } from "../format.js";

/** `buckets`: `{from_ms, count}`, each up to the next; `note` says what they should be. */
export function delayChart(title, buckets, note) {
  const used = buckets.filter((bucket) => bucket.count > 0);
  if (!used.length) return null;
  const [first, last] = [buckets.indexOf(used[0]), buckets.indexOf(used.at(-1))];
  const highest = Math.max(...used.map((bucket) => bucket.count));
  const range = ({ from_ms: from }, index) => {
    const next = buckets[index + 1];
    return next ? `${from ? latency(from) : "0"} to ${latency(next.from_ms)}` : `from ${latency(from)}`;
  };
  return h("section", { class: "card ranking delays" }, h("h3", {}, title),
    h("ul", {}, buckets.map((bucket, index) => (index < first || index > last ? null : h("li", { class: "ranking-line" },
      h("span", { class: "ranking-name" }, range(bucket, index)), h("span", { class: "ranking-count" }, count(bucket.count)),
      h("span", { class: "ranking-bar", "aria-hidden": "true" }, h("span", { style: { width: `${bucket.count ? Math.max(1.5, (bucket.count / highest) * 100) : 0}%` } })))))),
    h("p", { class: "quiet" }, note));
}
