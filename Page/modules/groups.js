// The sidebar: groups of pushes with their counts, and the other views.
import { h, replace } from "./dom.js";
import { count, counted } from "./format.js";
import { icon } from "./icons.js";
import { OUTCOMES, outcomeText } from "./outcomes.js";
import { roving } from "./roving.js";
import { go, onChange, shown } from "./route.js";
import { onSnapshot, snapshot } from "./snapshot.js";
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
    this.open = new Set(["topic", "type"]);
    roving(element);
    this.draw();
    onChange(() => this.draw());
    onSnapshot(() => this.draw());
  }

  /** The number of pushes of a group, if it is known. */
  number(name) {
    const { counts } = snapshot;
    if (counts === null) return undefined;
    if (name === "all") return counts.part ? counts.all.total : counts.all.matched;
    return name === "findings" ? counts.withFindings : counts.all.outcome.counts[name] ?? 0;
  }

  draw() {
    const focused = document.activeElement?.dataset?.group;
    const isHere = shown.view === "inbox";
    const outcome = term(shown.q, "outcome");
    const finding = term(shown.q, "finding");
    const all = isHere && outcome === null && finding === null;
    replace(this.element,
      h("ul", { class: "group-list" },
        this.line("all", "All", null, this.number("all"), all, () => this.search(withTerm(withTerm(shown.q, "outcome", null), "finding", null))),
        OUTCOMES.filter((name) => this.number(name) || name === "accepted" || name === "rejected" || outcome === name).map((name) => this.line(name, outcomeText(name)[0].toUpperCase() + outcomeText(name).slice(1), name,
          this.number(name), isHere && outcome === name, () => this.toggle("outcome", name))),
        this.line("findings", "With findings", "flag", this.number("findings"), isHere && finding === "*", () => this.toggle("finding", "*"))),
      isHere && shown.fold && h("p", { class: "group-note quiet" }, "The numbers are those of attempts."),
      snapshot.counts?.part && h("p", { class: "group-note quiet" }, `Below “All”: only ${snapshot.counts.part}.`),
      h("ul", { class: "group-list is-views" }, this.views.map(([view, name]) =>
        this.line(`view ${view}`, name, null, undefined, shown.view === view, () => go({ view, push: null })))),
      FACETS.map((facet) => this.facet(facet, isHere)));
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

  facet({ field, name, of }, isHere) {
    const { counts } = snapshot;
    const values = !counts ? [] : of === null ? (counts.findings?.items ?? []).map((item) => [item.finding, item.count]) : Object.entries(counts.all[of].counts).sort((a, b) => b[1] - a[1]);
    if (!values.length) return null;
    const chosen = term(shown.q, field);
    const details = h("details", { class: "facet", open: this.open.has(field) }, h("summary", {}, name),
      h("ul", { class: "group-list" }, (this.whole.has(field) ? values : values.slice(0, MAX_FACETS)).map(([value, number]) =>
        this.line(`${field} ${value}`, value, null, number, isHere && chosen === value, () => this.toggle(field, value))), this.more(field, values, of === null ? 0 : counts.all[of].other)));
    details.addEventListener("toggle", () => this.open[details.open ? "add" : "delete"](field));
    return details;
  }

  /** Leads to the values that are not listed; `other` is the number of pushes with values that the statistics leave out. */
  more(field, values, other) {
    const rest = values.length - MAX_FACETS;
    const isWhole = this.whole.has(field) || rest <= 0;
    const act = (key, name, number, action) => h("li", {}, h("button", { type: "button", class: "group is-more", data: { group: `${key} ${field}` }, on: { click: action } }, h("span", { class: "group-name" }, name),
      number > 0 && h("span", { class: "group-count" }, count(number))));
    return [!isWhole && act("more", counted(rest, "more value"), 0, () => { this.whole.add(field); this.draw(); }),
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
