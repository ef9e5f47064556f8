// What the provider does wrong, by kind: how often and when, the pushes that show it, advice, and how to reproduce it.
import { hasServer } from "../api.js";
import { sparkline } from "../charts/sparkline.js";
import { span } from "../charts/scale.js";
import { copy } from "../copy.js";
import { button, h, replace } from "../dom.js";
import { count, pushes } from "../format.js";
import { icon } from "../icons.js";
import { go } from "../route.js";
import { onSnapshot, recount, snapshot } from "../snapshot.js";
import { visible } from "../visible.js";
import { reproduction } from "./reproduction.js";

const SHOWN = 4;

export class FindingsPanel {
  constructor(actions) {
    this.actions = actions;
    this.open = new Set(); // the kinds whose commands are shown
    this.list = h("div", { class: "finding-list" }, h("p", { class: "notice" }, "Loading …"));
    this.partial = h("p", { class: "quiet", hidden: true });
    this.element = h("section", { class: "panel", "aria-label": "Findings" }, h("header", { class: "panel-head" }, h("h2", {}, "Findings")),
      h("p", { class: "quiet" }, "What this provider does wrong, or will do wrong with APNs. Findings never change a response."), this.partial, this.list);
    onSnapshot(() => this.draw());
  }

  load() {
    this.draw();
    recount();
  }

  draw() {
    const { counts } = snapshot;
    const problem = counts ? counts.findingsProblem : snapshot.failure;
    if (!this.element.isConnected || (counts === null && problem === null)) return;
    const items = counts?.findings?.items.toSorted((a, b) => b.count - a.count || (a.finding < b.finding ? -1 : 1));
    const hasPushes = counts?.all.total > 0;
    const key = JSON.stringify([items ?? problem.message, hasPushes]);
    if (key === this.drawn) return;
    this.drawn = key;
    this.partial.hidden = !counts?.part;
    this.partial.textContent = counts?.part ? `Only of ${counts.part}.` : "";
    const focused = document.activeElement?.dataset?.key;
    replace(this.list, !items ? h("p", { class: "notice is-error" }, problem.message) : items.length ? items.map((item) => this.card(item, counts.findings.timeline))
      : h("p", { class: "notice" }, hasPushes ? "No findings: no push shows a known mistake." : "No findings: there are no pushes yet."));
    if (focused) this.list.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
  }

  card(item, timeline) {
    const { finding, count: number } = item;
    const trend = timeline.counts[finding] ?? [];
    const period = span(trend.length * timeline.bucket_ms);
    const details = h("details", { class: "finding-commands", open: this.open.has(finding) }, h("summary", { data: { key: `how-${finding}` } }, "How to reproduce"),
      reproduction(finding, item.records[0]?.seq).map(({ text, command }) => h("div", { class: "command" }, h("p", {}, text),
        h("div", { class: "command-line" }, h("code", { class: "wrap" }, command), button("Copy", () => copy(command, "the command"), { class: "small plain-button", "aria-label": `Copy: ${text}` })))));
    details.addEventListener("toggle", () => this.open[details.open ? "add" : "delete"](finding));
    return h("article", { class: "card finding", "aria-labelledby": `finding-${finding}` },
      h("header", {}, h("h3", { id: `finding-${finding}` }, icon("flag"), finding), h("span", { class: "chip is-finding" }, pushes(number)),
        trend.length > 1 && h("span", { class: "trend" }, sparkline(trend, `${pushes(number)} in ${period}`), h("span", { class: "quiet" }, period)),
        button("Show in the list", () => go({ view: "inbox", q: `finding:${finding}`, push: null }), { class: "small", data: { key: `list-${finding}` }, "aria-label": `Show pushes with ${finding}` })),
      h("p", {}, item.summary), h("p", { class: "advice" }, h("strong", {}, "Do this: "), item.advice),
      h("ul", { class: "evidence-list" }, item.records.slice(0, SHOWN).map((one) => h("li", {},
        button(`#${one.seq}`, () => this.actions.open(one.seq), { class: "small", data: { key: `push-${finding}-${one.seq}` }, "aria-label": `Open push ${one.seq}` }),
        h("span", { class: "wrap" }, visible(one.explanation, { limit: 300 }))))),
      number > SHOWN && h("p", { class: "quiet" }, `The newest ${Math.min(SHOWN, item.records.length)} of ${count(number)}.`), hasServer() && details);
  }
}
