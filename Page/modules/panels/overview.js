// The overview of the pushes that match the search: counts over time, latencies, and the most common values.
import { delayChart } from "../charts/delays.js";
import { ranking } from "../charts/ranking.js";
import { compareSearches } from "../compare.js";
import { TimeChart } from "../charts/timechart.js";
import { button, h, replace } from "../dom.js";
import { count, latency } from "../format.js";
import { go, onChange, shown } from "../route.js";
import { onSnapshot, recount, snapshot } from "../snapshot.js";
import { shortHint, withTerm } from "../terms.js";
import { visible } from "../visible.js";

/** The milliseconds from which a response is shown as slow. */
const SLOW = 50;
// The members of the statistics that are listed, their search field and title.
const LISTS = [
  ["reason", "reason", "Reasons"], ["topic", "topic", "Topics"], ["rule", "rule", "Fault rules"],
  ["status", "status", "Responses"], ["push_type", "type", "Push types"],
];

export class OverviewPanel {
  constructor() {
    this.chart = new TimeChart({ label: "Pushes over time by outcome", onSelect: (from, until) => this.filter(
      withTerm(withTerm(shown.q, "since", new Date(from).toISOString()), "until", new Date(until).toISOString())) });
    this.scope = h("div", { class: "overview-scope", hidden: true });
    this.tiles = h("dl", { class: "tiles" });
    this.lists = h("div", { class: "rankings" });
    this.notice = h("div", { role: "status" });
    this.content = h("div", { class: "overview-content", hidden: true },
      h("section", { class: "card" }, h("h3", {}, "Pushes over time"), this.chart.element), this.tiles, this.lists);
    this.element = h("section", { class: "panel overview", "aria-label": "Overview" },
      h("header", { class: "panel-head" }, h("h2", {}, "Overview"), button("Two searches", () => compareSearches(shown.q), { class: "small", title: "Compare the numbers of two searches" })), this.scope, this.notice, this.content);
    onSnapshot(() => this.draw());
    onChange((now, before) => now.q !== before.q && this.draw());
  }

  load() {
    this.draw();
    recount();
  }

  /** Draws the numbers of the search of the list; why it cannot be counted. While it is counted, no number is visible, and the focus stays. */
  draw() {
    if (!this.element.isConnected) return;
    const { q, counts, problem } = snapshot;
    const isCounted = counts !== null && counts.found !== null && counts.q === q && q === shown.q && problem === null;
    this.content.hidden = problem !== null || (isCounted ? counts.found.matched === 0 : this.content.hidden);
    this.content.setAttribute("aria-busy", String(!isCounted));
    this.scope.hidden = !isCounted || (!q && !counts.part);
    replace(this.notice, problem ? h("p", { class: "notice is-error" }, visible([problem.message, shortHint(problem)].filter(Boolean).join(" — "), { limit: 500 }))
      : counts === null ? h("p", { class: "notice" }, "Loading …") : isCounted && !counts.found.matched && this.empty(counts.found, q, counts.part));
    if (isCounted) this.show(counts.found, q, counts.part);
  }

  empty(stats, q, part) {
    const isFiltered = stats.total > 0 && (q || part);
    return h("div", { class: "empty-panel" }, h("p", {}, isFiltered ? `No ${part ?? "pushes"} match the search.` : "No pushes yet."),
      isFiltered ? button("Show all", () => go({ q: "" })) : button("Connect a client", () => go({ view: "connect" }), { class: "primary" }));
  }

  show(stats, q, part) {
    replace(this.scope, part && h("span", {}, `Only ${part}.`),
      q && h("span", {}, "Only pushes that match ", h("code", {}, visible(q, { limit: 200 }))), q && button("Show all", () => go({ q: "" }), { class: "small" }));
    this.chart.draw(stats.timeline);
    const { time_to_acceptance: acceptance, retry_delay: delay, latency: response } = stats;
    const share = stats.matched ? `${Math.round((stats.accepted / stats.matched) * 1000) / 10} %` : "–";
    const tile = (name, value, note = "") => h("div", { class: "tile" }, h("dt", {}, name), h("dd", {}, value, note && h("span", { class: "quiet" }, ` ${note}`)));
    replace(this.tiles, tile("Pushes", count(stats.matched)), tile("Accepted", share, count(stats.accepted)), tile("Retries", count(stats.retries)),
      tile("Device tokens", count(stats.device_tokens)), tile("Connections", count(stats.connections)),
      tile("Success after a retry", count(acceptance.pushes)),
      // What a provider waits for, from its first attempt. The time of one response is the mock's own, unless a rule delays it.
      acceptance.pushes > 0 && tile("Time to success", latency(acceptance.median_ms), `median, ${latency(acceptance.max_ms)} at most`),
      delay.retries > 0 && tile("Wait before a retry", latency(delay.median_ms), `median, ${latency(delay.max_ms)} at most`),
      response.max_ms >= SLOW && tile("Slowest response", latency(response.max_ms)),
      stats.evicted > 0 && tile("Evicted", count(stats.evicted)));
    replace(this.lists, delayChart("Waits before retries", delay.buckets ?? [], "APNs asks for longer and longer waits: they should grow from attempt to attempt."), LISTS.map(([member, field, title]) => ranking(title,
      Object.entries(stats[member].counts).sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)), (value) => this.filter(withTerm(q, field, value)), member === "status" ? tone : null)));
  }

  filter(q) {
    go({ view: "inbox", q, push: null });
  }
}

function tone(status) {
  if (status.startsWith("2")) return "accepted";
  return status.startsWith("5") || status === "429" ? "warning" : "rejected";
}
