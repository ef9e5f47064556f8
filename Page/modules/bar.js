// The top bar: the active profile, the connection state, theme and keyboard shortcuts; and the banner about active faults.
import { post, put } from "./api.js";
import { offsetText, tokenWarning } from "./clock.js";
import { showMessage, showError } from "./copy.js";
import { countdown } from "./countdown.js";
import { button, h, replace } from "./dom.js";
import { count, counted } from "./format.js";
import { icon } from "./icons.js";
import { go } from "./route.js";
import { roving } from "./roving.js";
import { visible } from "./visible.js";

const STATES = { live: "live", lost: "connecting …", paused: "paused" };

export class Bar {
  /** `actions`: `pause()`, `theme()`, `keys()`, `compose()`, `reload()`. */
  constructor(element, banner, actions) {
    this.banner = banner;
    this.actions = actions;
    this.profile = h("button", { type: "button", class: "bar-profile", title: "Faults", on: { click: () => go({ view: "faults", push: null }) } }, "profile …");
    this.clock = h("span", { class: "bar-clock", hidden: true });
    this.pauseButton = button("Pause faults", () => this.pauseFaults(), { class: "small danger", hidden: true });
    this.live = h("button", { type: "button", class: "bar-live is-lost", on: { click: () => actions.pause() }, title: "Pause or resume (.)" });
    replace(element,
      h("h1", { class: "brand" }, h("a", { href: "/", on: { click: (event) => { event.preventDefault(); go({ view: "inbox", q: "", push: null }); } } }, icon("bell"), "apns-mock")),
      this.profile, this.clock, this.pauseButton, h("span", { class: "bar-space" }),
      roving(h("div", { class: "bar-tools", role: "group", "aria-label": "Page" },
        button([icon("plus"), h("span", { class: "bar-word" }, "New push")], actions.compose, { class: "small", title: "Write a push and send it (n)", "aria-label": "New push" }), this.live,
        h("button", { type: "button", class: "plain", title: "Theme (t)", "aria-label": "Change the theme", on: { click: actions.theme } }, icon("theme")),
        h("button", { type: "button", class: "plain", title: "Keyboard shortcuts (?)", "aria-label": "Keyboard shortcuts", on: { click: actions.keys } }, "?"))));
    this.tokens = h("div", { class: "banner", role: "status", hidden: true });
    banner.after(this.tokens);
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
    const what = [profile.rules?.length ? `the profile ${profile.name}` : null, added.length ? counted(added.length, "rule") : null].filter(Boolean).join(" and ");
    replace(this.banner, icon("warning"), profile.halted
      ? [h("span", {}, "Faults are paused: pushes get the responses of APNs."), button("Resume faults", () => this.send("/faults/resume", "Faults resumed"), { class: "small" })]
      : [h("span", {}, "Faults are active: ", visible(what), profile.ends_in_ms !== null ? [", for ", countdown(profile.ends_in_ms)] : "", "."), button("View", () => go({ view: "faults", push: null }), { class: "small" })]);
  }

  setClock(clock) {
    const offset = offsetText(clock);
    this.clock.hidden = offset === "";
    replace(this.clock, offset && [h("span", {}, `clock ${clock.mode === "frozen" ? "frozen, " : ""}${offset}`),
      button("Real time", () => this.resetClock(), { class: "small", title: "Set the clock to the real time" })]);
    this.clock.title = offset && `It is ${clock.now} by the server's clock`;
    this.tokens.hidden = !clock.rejects_new_tokens;
    replace(this.tokens, clock.rejects_new_tokens && [icon("warning"), h("span", {}, tokenWarning(clock))]);
  }

  /** Says that the link which opened the page is of another inbox. */
  showOtherInbox() {
    const notice = h("div", { class: "banner", role: "status" }, icon("warning"),
      h("span", {}, "The link is of another inbox: the push with this number here is another one, or there is none. "), button("Close", () => notice.remove(), { class: "small" }));
    this.tokens.after(notice);
  }

  resetClock() {
    return put("/clock", { mode: "real" }).then((clock) => {
      this.setClock(clock);
      showMessage("The clock shows the real time");
    }, showError);
  }

  pauseFaults() {
    return this.send("/faults/halt", "Faults paused");
  }

  send(path, message) {
    return post(path).then(() => showMessage(message), showError).then(() => this.actions.reload());
  }
}
