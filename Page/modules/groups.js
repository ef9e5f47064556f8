// The sidebar: groups of pushes with their counts, and the other views.
import { get } from "./api.js";
import { h, oneAtATime, replace, settled } from "./dom.js";
import { count } from "./format.js";
import { icon } from "./icons.js";
import { counted, newest } from "./newest.js";
import { OUTCOMES, outcomeText } from "./outcomes.js";
import { roving } from "./roving.js";
import { go, onChange, shown } from "./route.js";
import { visible } from "./visible.js";
import { term, withTerm } from "./terms.js";

const VIEWS = [["overview", "Overview"], ["findings", "Findings"], ["connections", "Connections"], ["runs", "Runs"], ["devices", "Devices"], ["faults", "Faults"], ["connect", "Connect a client"]];
// The search field, the label, and the member of the statistics; findings have their own endpoint.
const FACETS = [
  { field: "topic", name: "Topics", of: "topic" }, { field: "type", name: "Push types", of: "push_type" },
  { field: "status", name: "Responses", of: "status" }, { field: "finding", name: "Findings by kind", of: null },
];
const MAX_FACETS = 12;

export class Groups {
  /** `onFind(field)` is called to search other values of a field than those listed; `views` are those that can be shown. */
  constructor(element, onFind, views = VIEWS) {
    this.element = element;
    this.onFind = onFind;
    this.views = views;
    this.whole = new Set(); // the fields of which all values are listed
    this.others = {}; // the number of pushes with values that the statistics do not list
    this.counts = {};
    this.facets = {};
    this.open = new Set(["topic", "type"]);
    this.load = oneAtATime(() => this.read());
    this.refresh = settled(this.load, 400);
    roving(element);
    this.draw();
    onChange(() => this.draw());
  }

  async read() {
    if (document.hidden) return;
    const began = performance.now();
    try {
      await this.count();
      this.draw();
    } catch {
      // The next event triggers another load.
    }
    // Counting a large inbox takes longer, so it is counted less often.
    const rest = Math.max(600, (performance.now() - began) * 8);
    await new Promise((resolve) => setTimeout(resolve, rest));
  }

  async count() {
    const limits = await newest();
    const [stats, findings, found] = await Promise.all([
      get("/stats", limits), get("/findings", limits), get("/pushes", { q: "finding:*", limit: 0, ...limits }),
    ]);
    this.counted = counted(limits);
    this.counts = { all: this.counted ? stats.total : stats.matched, findings: found.matched };
    for (const outcome of OUTCOMES) this.counts[outcome] = stats.outcome.counts[outcome] ?? 0;
    for (const { field, of } of FACETS) {
      this.facets[field] = of === null ? findings.items.map((item) => [item.finding, item.count])
        : Object.entries(stats[of].counts).sort((a, b) => b[1] - a[1]);
      this.others[field] = of === null ? 0 : stats[of].other;
    }
  }

  draw() {
    const focused = document.activeElement?.dataset?.group;
    const isHere = shown.view === "inbox";
    const outcome = term(shown.q, "outcome");
    const finding = term(shown.q, "finding");
    const all = isHere && outcome === null && finding === null;
    replace(this.element,
      h("ul", { class: "group-list" },
        this.line("all", "All", null, this.counts.all, all, () => this.search(withTerm(withTerm(shown.q, "outcome", null), "finding", null))),
        OUTCOMES.filter((name) => this.counts[name] || name === "accepted" || name === "rejected" || outcome === name).map((name) => this.line(name, outcomeText(name)[0].toUpperCase() + outcomeText(name).slice(1), name,
          this.counts[name], isHere && outcome === name, () => this.toggle("outcome", name))),
        this.line("findings", "With findings", "flag", this.counts.findings, isHere && finding === "*", () => this.toggle("finding", "*"))),
      this.counted && h("p", { class: "group-note quiet" }, `Below “All”: only ${this.counted}.`),
      h("ul", { class: "group-list is-views" }, this.views.map(([view, name]) =>
        this.line(`view ${view}`, name, null, undefined, shown.view === view, () => go({ view, push: null })))),
      FACETS.map(({ field, name }) => this.facet(field, name, isHere)));
    // On a narrow screen the sidebar is a scrolling strip.
    if (this.drawnView !== shown.view || !this.element.matches(":hover, :focus-within")) this.element.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
    this.drawnView = shown.view;
    if (focused) this.element.querySelector(`[data-group="${CSS.escape(focused)}"]`)?.focus();
  }

  line(key, name, picture, number, isCurrent, act) {
    return h("li", {}, h("button", { type: "button", class: "group", "aria-current": isCurrent ? "true" : null, data: { group: key }, on: { click: act } },
      picture && h("span", { class: `group-icon is-${picture}` }, icon(picture)), h("span", { class: "group-name" }, name instanceof Node ? name : name === "" ? h("span", { class: "quiet" }, "none") : visible(name)),
      number !== undefined && h("span", { class: "group-count" }, count(number))));
  }

  facet(field, name, isHere) {
    const values = this.facets[field] ?? [];
    if (!values.length) return null;
    const chosen = term(shown.q, field);
    const details = h("details", { class: "facet", open: this.open.has(field) }, h("summary", {}, name),
      h("ul", { class: "group-list" }, (this.whole.has(field) ? values : values.slice(0, MAX_FACETS)).map(([value, number]) =>
        this.line(`${field} ${value}`, value, null, number, isHere && chosen === value, () => this.toggle(field, value))), this.more(field, values)));
    details.addEventListener("toggle", () => this.open[details.open ? "add" : "delete"](field));
    return details;
  }

  /** Leads to the values that are not listed. */
  more(field, values) {
    const rest = values.length - MAX_FACETS;
    const other = this.others[field] ?? 0;
    const isWhole = this.whole.has(field) || rest <= 0;
    const act = (key, name, number, action) => h("li", {}, h("button", { type: "button", class: "group is-more", data: { group: `${key} ${field}` }, on: { click: action } }, h("span", { class: "group-name" }, name),
      number > 0 && h("span", { class: "group-count" }, count(number))));
    return [!isWhole && act("more", `${count(rest)} more ${rest === 1 ? "value" : "values"}`, 0, () => { this.whole.add(field); this.draw(); }),
      this.whole.has(field) && rest > 0 && act("fewer", "Fewer values", 0, () => { this.whole.delete(field); this.draw(); }),
      isWhole && other > 0 && act("other", "Find another value", other, () => this.onFind(field))];
  }

  toggle(field, value) {
    this.search(withTerm(shown.q, field, shown.view === "inbox" && term(shown.q, field) === value ? null : value));
  }

  search(q) {
    go({ view: "inbox", q, push: null });
  }
}
