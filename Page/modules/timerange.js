// A menu that restricts the search to a time range.
import { serverNow } from "./clock.js";
import { button, h } from "./dom.js";
import { menuButton } from "./menu.js";
import { term, withTerm } from "./terms.js";

const RANGES = [["-5m", "Last 5 minutes"], ["-1h", "Last hour"], ["-24h", "Last 24 hours"]];

export class TimeRange {
  /** `q()` returns the search, `search(q)` replaces it. */
  constructor({ q, search }) {
    this.q = q;
    this.search = search;
    this.from = h("input", { type: "datetime-local", id: "range-from", step: "1" });
    this.to = h("input", { type: "datetime-local", id: "range-to", step: "1" });
    const range = menuButton("Any time", { title: "Restrict the time range", name: "Time range", onOpen: () => this.fill() },
      button("Any time", () => this.apply(null, null), { class: "menu-item" }),
      RANGES.map(([since, name]) => button(name, () => this.apply(since, null), { class: "menu-item" })),
      h("div", { class: "range-fields" }, h("label", { for: "range-from" }, "From"), this.from, h("label", { for: "range-to" }, "To"), this.to,
        button("Apply", () => this.apply(instant(this.from.value), instant(this.to.value)), { class: "small" })));
    Object.assign(this, { element: range.element, toggle: range.toggle, show: range.show });
  }

  /** Sets the fields to the range of the search, or to the last hour. */
  fill() {
    const [since, until] = [term(this.q(), "since"), term(this.q(), "until")];
    this.from.value = local(since) ?? local(new Date(serverNow() - 3600000).toISOString());
    this.to.value = local(until) ?? "";
  }

  apply(since, until) {
    this.show(false);
    this.toggle.focus();
    this.search(withTerm(withTerm(this.q(), "since", since), "until", until));
  }

  /** Shows the range of a search. */
  update(q) {
    const [since, until] = [term(q, "since"), term(q, "until")];
    const known = until === null && RANGES.find(([value]) => value === since)?.[1];
    this.toggle.textContent = known || (since === null && until === null ? "Any time" : "Time range");
    this.toggle.classList.toggle("is-active", since !== null || until !== null);
  }
}

/** The time of a field in RFC 3339; null if it is empty. */
function instant(value) {
  const date = new Date(value);
  return value === "" || Number.isNaN(date.getTime()) ? null : date.toISOString();
}

/** A time as the value of a field, in local time; null if it is not a time. */
function local(text) {
  const date = new Date(text ?? "");
  if (Number.isNaN(date.getTime())) return null;
  return new Date(date.getTime() - date.getTimezoneOffset() * 60000).toISOString().slice(0, 19);
}
