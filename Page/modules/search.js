// The search field for the API's query language, and a help sheet for its syntax.
import { h, replace, settled } from "./dom.js";
import { icon } from "./icons.js";
import { go, onChange, shown } from "./route.js";

const SYNTAX = [
  ["status:503", "the response status; also 5xx as 5*, >=500"], ["reason:Unregistered", "the response reason"],
  ["outcome:faulted", "accepted, rejected, faulted, pending, aborted"], ["topic:com.acme.*", "* matches any text"],
  ["type:background", "the push type"], ["token:ab12*", "the device token"], ["text:\"order shipped\"", "anywhere in the payload"],
  ["payload./aps/badge:>3", "a JSON pointer into the payload"], ["header.apns-priority:5", "a header"], ["larger:3.5K", "and smaller:"],
  ["is:retry", "first, pending, duplicate"], ["finding:*", "any finding"], ["rule:flaky", "and profile:, the fault"],
  ["delivery:stored*", "the delivery to a registered device"], ["kind:broadcast", "and channel, which are not listed otherwise"],
  ["connection:c17", "and listener:, environment:, key_id:, team_id:"], ["since:5m", "and until:, a time or an age"], ["!type:alert", "! negates a condition"],
];

export class Search {
  constructor() {
    this.field = h("input", {
      id: "search", type: "search", placeholder: "status:503 topic:com.acme.*", autocomplete: "off", spellcheck: "false",
      "aria-label": "Search pushes", "aria-describedby": "search-problem",
      on: { input: () => this.changed(), keydown: (event) => this.onKey(event) },
    });
    this.field.value = shown.q;
    this.problem = h("p", { id: "search-problem", class: "search-problem", role: "status", hidden: true });
    this.sheet = h("div", { class: "sheet", id: "search-sheet", hidden: true }, h("p", { class: "quiet" }, "Conditions on different fields must all match; conditions on the same field are alternatives."),
      h("dl", { class: "syntax" }, SYNTAX.map(([example, meaning]) => [h("dt", {}, h("button", { type: "button", class: "syntax-example", on: { click: () => this.add(example) } }, example)), h("dd", {}, meaning)])));
    this.toggle = h("button", { type: "button", class: "plain", "aria-expanded": "false", "aria-controls": "search-sheet", on: { click: () => this.showSheet(this.sheet.hidden) } }, "Syntax");
    this.element = h("div", { class: "search" }, h("div", { class: "search-box", role: "search" }, icon("search"), this.field, h("kbd", { "aria-hidden": "true" }, "/"), this.toggle),
      this.problem, this.sheet);
    this.changed = settled(() => go({ q: this.field.value.trim(), view: "inbox", push: null }, { quietly: true }), 250);
    onChange(() => {
      if (document.activeElement !== this.field || !this.field.value.trim().startsWith(shown.q)) this.field.value = shown.q;
    });
    document.addEventListener("click", (event) => {
      if (!this.element.contains(event.target)) this.showSheet(false);
    });
  }

  showSheet(isOpen) {
    this.sheet.hidden = !isOpen;
    this.toggle.setAttribute("aria-expanded", String(isOpen));
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

  onKey(event) {
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
    replace(this.problem, error === null ? null : [h("strong", {}, error.message), error.hint ? ` — ${error.hint}` : ""]);
  }
}
