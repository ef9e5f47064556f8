// The server's clock: its time, and controls to freeze, advance and reset it.
import { get, post, put } from "../api.js";
import { tokenWarning } from "../clock.js";
import { showError, showMessage } from "../copy.js";
import { button, h, replace } from "../dom.js";
import { milliseconds } from "../format.js";

const STEPS = ["-1h", "1m", "20m", "61m", "24h"];

export class ClockCard {
  /** @param onChange called with the clock after each load. */
  constructor(onChange) {
    this.onChange = onChange;
    this.time = h("p", { class: "clock-time mono" });
    this.mode = h("div", { class: "panel-actions" });
    this.by = h("input", { id: "clock-by", class: "mono", autocomplete: "off", spellcheck: "false", placeholder: "1h30m" });
    this.problem = h("p", { class: "no", role: "status", hidden: true });
    this.warning = h("p", { class: "no clock-warning", role: "status", hidden: true });
    this.element = h("section", { class: "card clock", "aria-label": "Clock" },
      h("div", { class: "device-title" }, h("h3", {}, "Clock"), this.time), this.mode, this.warning,
      h("form", { class: "field-row", on: { submit: (event) => { event.preventDefault(); this.advance(this.by.value.trim()); } } },
        h("label", { for: "clock-by" }, "Advance by"), this.by, h("button", { type: "submit", class: "small" }, "Advance"),
        STEPS.map((step) => button(step.startsWith("-") ? step.replace("-", "−") : `+${step}`, () => this.advance(step), { class: "small plain-button", "aria-label": `Advance the clock by ${step}` }))), this.problem,
      h("p", { class: "quiet" }, "The clock decides when provider tokens and pushes expire, and is the time of new records. Delays on the wire use real time."));
    setInterval(() => this.element.isConnected && this.clock && this.tick(), 1000);
  }

  async load() {
    this.show(await get("/clock"));
  }

  show(clock) {
    this.clock = clock;
    this.offset = clock.mode === "frozen" ? 0 : Date.parse(clock.now) - Date.now();
    this.isMoved = clock.mode === "frozen" || Math.abs(this.offset) > 2000;
    const hadFocus = this.mode.contains(document.activeElement);
    replace(this.mode, h("span", { class: `chip ${this.isMoved ? "is-finding" : "is-online"}` }, clock.mode === "frozen" ? "frozen" : this.isMoved ? "running, not at the real time" : "real time"),
      clock.mode !== "frozen" && button("Freeze", () => this.set({ mode: "frozen" }, "Clock frozen"), { class: "small" }),
      this.isMoved && button("Real time", () => this.set({ mode: "real" }, "The clock shows the real time"), { class: "small" }));
    this.warning.textContent = tokenWarning(clock);
    this.warning.hidden = !clock.rejects_new_tokens;
    if (hadFocus) this.mode.querySelector("button")?.focus();
    this.tick();
    this.onChange(clock);
  }

  tick() {
    const now = this.clock.mode === "frozen" ? Date.parse(this.clock.now) : Date.now() + this.offset;
    this.time.textContent = new Date(now).toISOString().replace("T", " ").replace(/\.\d+Z/, " UTC");
  }

  advance(by) {
    const problem = milliseconds(by) === null ? "Use a duration such as 90s, 20m or 1h30m; with a minus sign the clock is set back." : null;
    this.problem.hidden = problem === null;
    this.problem.textContent = problem ?? "";
    if (problem === null) this.change(post("/clock/advance", { by }), `Clock advanced by ${by}`);
  }

  set(body, message) {
    return this.change(put("/clock", body), message);
  }

  change(done, message) {
    return done.then((clock) => {
      this.show(clock);
      showMessage(message);
    }, showError);
  }
}
