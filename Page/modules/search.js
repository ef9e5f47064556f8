// The search field for the API's query language: completion, removable conditions, time ranges and a help sheet.
import { Completion } from "./complete.js";
import { button, h, replace, settled } from "./dom.js";
import { icon } from "./icons.js";
import { roving } from "./roving.js";
import { go, onChange, shown } from "./route.js";
import { conditions, shortHint, withoutTerm } from "./terms.js";
import { TimeRange } from "./timerange.js";
import { visible } from "./visible.js";

const SYNTAX = [
  ["order 503", "words that all occur in the push, or are its status, reason, outcome, finding, rule, delivery, test or run"], ["status:503", "the response status; also 5*, >=500"], ["reason:Unregistered", "the response reason"],
  ["outcome:rejected", "accepted, rejected, response_lost, unanswered, unprocessed, incomplete, malformed, pending"], ["is:faulted", "pushes that a fault rule affected"], ["is:deviating", "pushes whose answer from upstream differs from the rules"], ["topic:com.acme.*", "* matches any text"],
  ["type:background", "the push type"], ["token:ab12*", "the device token"], ["text:\"order shipped\"", "this text anywhere in the push"],
  ["payload./aps/badge:>3", "a JSON pointer into the payload"], ["header.apns-priority:5", "a header"], ["larger:3.5K", "and smaller:"],
  ["is:retry", "first, pending, duplicate"], ["finding:*", "any finding"], ["rule:flaky*", "and profile:, the fault"],
  ["delivery:stored*", "the delivery to a registered device"], ["kind:broadcast", "and channel, which are not listed otherwise"],
  ["-word", "also ! before a condition: not"], ["#4711", "the push with this number, as -#4711 all others"], ["run:r1", "and test:, the run and the test"],
  ["connection:c17", "and listener:, environment:, key_id:, team_id:"], ["since:-5m", "and until:, a time or an age"], ["!type:alert", "! negates a condition"],
];

export class Search {
  /** @param rows returns the loaded rows, whose values are suggested. */
  constructor(rows) {
    this.field = h("input", {
      id: "search", type: "search", placeholder: "Text, 503, a reason, a test … or status:5* topic:com.acme.*", autocomplete: "off", spellcheck: "false",
      "aria-label": "Search pushes", "aria-describedby": "search-problem",
      on: { input: () => this.onInput(), keydown: (event) => this.onKey(event) },
    });
    this.field.value = shown.q;
    this.isWriting = false; // whether the search changes to what was written here
    this.completion = new Completion(this.field, { onAccept: () => this.changed(), rows });
    this.range = new TimeRange({ q: () => shown.q, search: (q) => go({ q, view: "inbox" }) });
    this.problem = h("p", { id: "search-problem", class: "search-problem", role: "status", hidden: true });
    this.sheet = h("div", { class: "sheet", id: "search-sheet", hidden: true }, h("p", { class: "quiet" }, "Words and conditions on different fields must all match; conditions on the same field are alternatives."),
      h("dl", { class: "syntax" }, SYNTAX.map(([example, meaning]) => [h("dt", {}, h("button", { type: "button", class: "syntax-example", on: { click: () => this.add(example) } }, example)), h("dd", {}, meaning)])));
    this.toggle = h("button", { type: "button", class: "plain", "aria-expanded": "false", "aria-controls": "search-sheet", on: { click: () => this.showSheet(this.sheet.hidden) } }, "Syntax");
    this.chips = h("ul", { class: "conditions", "aria-label": "Conditions", hidden: true });
    this.element = h("div", { class: "search" },
      h("div", { class: "search-line" },
        h("div", { class: "search-box", role: "search" }, icon("search"), this.field, h("kbd", { "aria-hidden": "true" }, "/"), this.completion.element),
        roving(h("div", { class: "search-tools" }, this.toggle, this.range.element))),
      this.problem, this.chips, this.sheet);
    this.changed = settled(() => {
      // A field without a value, which a completion may have inserted, is not a condition yet.
      const q = this.field.value.trim();
      if (/(^|\s)!?[a-z_]+[:=]$/.test(this.field.value) || q === shown.q) return;
      this.isWriting = true;
      go({ q, view: "inbox", push: null }, { quietly: true });
      this.isWriting = false;
    }, 250);
    onChange((now, before) => {
      if (now.q !== before.q && !this.isWriting) this.field.value = now.q;
      this.update();
    });
    document.addEventListener("click", (event) => {
      if (!this.element.contains(event.target)) this.showSheet(false);
    });
    this.update();
  }

  /** Shows the search of the address. */
  update() {
    if (document.activeElement !== this.field || !this.field.value.trim().startsWith(shown.q)) this.field.value = shown.q;
    this.range.update(shown.q);
    const all = conditions(shown.q);
    this.chips.hidden = !all.length;
    replace(this.chips, all.map((one, index) => this.chip(one, index)),
      all.length > 1 && h("li", {}, button("Remove all", () => go({ q: "" }), { class: "condition-all" })));
  }

  chip({ text, field, value, isNegated }, index) {
    const label = field === null ? [h("span", { class: "quiet" }, "text "), visible(value, { limit: 60 })] : [h("span", { class: "quiet" }, field, " "), visible(value, { limit: 60 })];
    return h("li", { class: isNegated ? "condition is-negated" : "condition" }, h("span", { class: "condition-text", title: text }, isNegated && h("strong", {}, "not "), label),
      h("button", { type: "button", class: "condition-remove", "aria-label": `Remove the condition ${text}`, on: { click: () => this.removeCondition(index) } }, icon("close")));
  }

  removeCondition(index) {
    go({ q: withoutTerm(shown.q, index) });
    (this.chips.querySelectorAll(".condition-remove")[Math.max(0, index - 1)] ?? this.field).focus();
  }

  showSheet(isOpen) {
    this.sheet.hidden = !isOpen;
    this.toggle.setAttribute("aria-expanded", String(isOpen));
  }

  /** Begins a condition on a field, whose values are then suggested. */
  begin(field) {
    this.field.value = `${this.field.value.trim()} ${field}:`.trim();
    this.field.focus();
    this.completion.update();
  }

  add(example) {
    this.field.value = `${this.field.value.trim()} ${example}`.trim();
    this.field.focus();
    this.changed();
  }

  focus() {
    this.field.focus();
    this.field.select();
  }

  onInput() {
    this.completion.update();
    this.changed();
  }

  onKey(event) {
    if (this.completion.onKey(event)) return;
    if (event.key === "Escape") {
      if (!this.sheet.hidden) this.showSheet(false);
      else this.field.blur();
      event.stopPropagation();
    } else if (event.key === "Enter") {
      go({ q: this.field.value.trim(), view: "inbox" });
      this.field.blur();
      document.querySelector(".list")?.focus();
    }
  }

  /** Shows an error in the query; null hides it. */
  showError(error) {
    this.problem.hidden = error === null;
    this.field.setAttribute("aria-invalid", String(error !== null));
    const hint = error && shortHint(error);
    replace(this.problem, error === null ? null : [h("strong", {}, visible(error.message)), hint ? [" — ", visible(hint)] : ""]);
  }
}
