// The top bar: the active profile, the connection state, theme and keyboard shortcuts; and the banner about active faults.
import { post } from "./api.js";
import { tokenWarning } from "./clock.js";
import { showMessage, showError } from "./copy.js";
import { countdown } from "./countdown.js";
import { button, h, replace } from "./dom.js";
import { count } from "./format.js";
import { icon } from "./icons.js";
import { go } from "./route.js";
import { visible } from "./visible.js";

const STATES = { live: "live", lost: "connecting …", paused: "paused" };

export class Bar {
  /** `actions`: `pause()`, `theme()`, `keys()`, `reload()`. */
  constructor(element, banner, actions) {
    this.banner = banner;
    this.actions = actions;
    this.profile = h("button", { type: "button", class: "bar-profile", title: "Faults", on: { click: () => go({ view: "faults", push: null }) } }, "profile …");
    this.clock = h("span", { class: "bar-clock", hidden: true });
    this.pauseButton = button("Pause faults", () => this.pauseFaults(), { class: "small danger", hidden: true });
    this.live = h("button", { type: "button", class: "bar-live is-lost", on: { click: () => actions.pause() }, title: "Pause or resume (.)" });
    replace(element,
      h("h1", { class: "brand" }, h("a", { href: "/", on: { click: (event) => { event.preventDefault(); go({ view: "inbox", q: "", push: null }); } } }, icon("bell"), "apns-mock")),
      this.profile, this.clock, this.pauseButton, h("span", { class: "bar-space" }), this.live,
      h("button", { type: "button", class: "plain", title: "Theme (t)", "aria-label": "Change the theme", on: { click: actions.theme } }, icon("theme")),
      h("button", { type: "button", class: "plain", title: "Keyboard shortcuts (?)", "aria-label": "Keyboard shortcuts", on: { click: actions.keys } }, "?"));
    this.setLive("lost", 0);
  }

  setLive(state, waiting) {
    this.live.className = `bar-live is-${state}`;
    this.live.setAttribute("aria-pressed", String(state === "paused"));
    replace(this.live, state === "paused" ? icon("play") : h("span", { class: "dot" }), h("span", {}, STATES[state]),
      waiting > 0 && h("span", { class: "chip is-new" }, `${count(waiting)} new`));
  }

  setProfile(profile, added) {
    const parameters = Object.entries(profile.params ?? {}).slice(0, 2).map(([name, value]) => `${name} ${value}`).join(", ");
    replace(this.profile, h("span", { class: "quiet" }, "profile "), h("strong", {}, visible(profile.name)), parameters && h("span", { class: "bar-parameters" }, ` ${parameters}`),
      h("span", { class: "quiet bar-seed" }, ` seed ${profile.seed}`));
    const isActive = (profile.rules?.length ?? 0) + added.length > 0;
    this.pauseButton.hidden = !isActive || profile.halted;
    this.banner.hidden = !isActive && !profile.halted;
    this.banner.className = profile.halted ? "banner is-paused" : "banner";
    const what = [profile.rules?.length ? `the profile ${profile.name}` : null, added.length ? `${added.length} ${added.length === 1 ? "rule" : "rules"}` : null].filter(Boolean).join(" and ");
    replace(this.banner, icon("warning"), profile.halted
      ? [h("span", {}, "Faults are paused: pushes get the responses of APNs."), button("Resume faults", () => this.send("/faults/resume", "Faults resumed"), { class: "small" })]
      : [h("span", {}, "Faults are active: ", visible(what), profile.ends_in_ms !== null ? [", for ", countdown(profile.ends_in_ms)] : "", "."), button("View", () => go({ view: "faults", push: null }), { class: "small" })]);
  }

  setClock(clock) {
    // A clock that runs is within a second of the machine's unless it was moved.
    const isMoved = clock.mode === "frozen" || Math.abs(clock.offset_ms) >= 1000;
    this.clock.hidden = !isMoved;
    this.clock.textContent = !isMoved ? "" : `clock ${clock.mode === "frozen" ? "frozen" : "moved"}: ${clock.now}${clock.rejects_new_tokens ? ", new provider tokens get 403" : ""}`;
    this.clock.title = tokenWarning(clock);
  }

  pauseFaults() {
    this.send("/faults/halt", "Faults paused");
  }

  send(path, message) {
    post(path).then(() => showMessage(message), showError).then(() => this.actions.reload());
  }
}
