// The details of a push, whose modules are loaded after the first rows. Until then, the last request is kept.
import { h } from "./dom.js";

export class LateDetail {
  constructor() {
    this.element = h("section", { class: "detail", "aria-label": "Push", "aria-busy": "true" }, h("p", { class: "detail-empty quiet" }, "Loading …"));
    this.detail = null;
    this.act = () => {};
  }

  /** Replaces this by the loaded details. */
  use(detail) {
    this.detail = detail;
    this.element.replaceWith(detail.element);
    this.element = detail.element;
    this.act();
  }

  /** Calls a method now, or when the details are loaded. */
  call(name, ...values) {
    this.act = () => this.detail[name](...values);
    if (this.detail) this.act();
  }

  show(...values) { this.call("show", ...values); }
  showNothing(...values) { this.call("showNothing", ...values); }
  compose() { this.call("compose"); }
  edit(...values) { this.call("edit", ...values); }
  redraw() { this.detail?.redraw(); }
  retry() { this.detail?.retry(); }
  copyID() { this.detail?.copyID(); }
  update(record) { this.detail?.update(record); }
  adjacentAttempt(step) { return this.detail?.adjacentAttempt(step) ?? null; }
  get record() { return this.detail?.record ?? null; }
}
