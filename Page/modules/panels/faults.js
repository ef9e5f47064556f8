// The active faults: the profile, its parameters, the counters of its rules, added rules, and pausing all of them.
import { get, patch, post, put, remove } from "../api.js";
import { showMessage, showError } from "../copy.js";
import { countdown } from "../countdown.js";
import { button, h, replace, settled, table, throttled } from "../dom.js";
import { count } from "../format.js";
import { visible } from "../visible.js";
import { ClockCard } from "./clock.js";
import { parameterRow } from "./parameter.js";
import { RuleForm } from "./ruleform.js";

// How long a profile stays active: the ttl and its label.
const DURATIONS = [["", "until changed"], ["1m", "for 1 minute"], ["5m", "for 5 minutes"], ["30m", "for 30 minutes"], ["2h", "for 2 hours"]];

export class FaultsPanel {
  /** `actions`: `open(seq)`. `onChange` is called with the active profile after each load, `onClock` with the clock. */
  constructor(actions, onChange, onClock) {
    this.onChange = onChange;
    this.clock = new ClockCard(onClock);
    this.profiles = [];
    this.picker = h("select", { id: "profile-picker", on: { change: () => this.pick(this.picker.value) } });
    // Without a profile, it applies to the one that is chosen next.
    this.duration = h("select", { id: "profile-duration", on: { change: () => this.picker.value !== "healthy" && this.pick(this.picker.value) } },
      DURATIONS.map(([ttl, name]) => h("option", { value: ttl }, name)));
    this.head = h("div", { class: "card" });
    this.parameters = h("div", { class: "card", hidden: true });
    this.rules = h("div", { class: "card" });
    this.added = h("div", { class: "card" });
    this.explanation = h("div", { class: "card", role: "status", hidden: true });
    this.form = new RuleForm({ ...actions, reload: () => this.load() }).element;
    this.form.hidden = true; // It would move under the pointer when what is above it is loaded.
    this.element = h("section", { class: "panel", "aria-label": "Faults" },
      h("header", { class: "panel-head" }, h("h2", {}, "Faults")), this.head, this.parameters, this.rules, this.added, this.explanation,
      this.form, this.clock.element);
    this.refresh = throttled(() => this.load(), 700);
    this.changes = Promise.resolve();
    // The number of the newest request for the state, and of the one that is shown.
    this.requested = 0;
    this.shown = 0;
  }

  async load() {
    const number = (this.requested += 1);
    try {
      const [profile, rules] = await Promise.all([get("/profile"), get("/rules"), this.element.isConnected && this.clock.load()]);
      if (!this.profiles.length) this.profiles = (await get("/profiles")).items;
      if (number < this.shown) return;
      this.shown = number;
      this.show(profile, rules.items);
      this.onChange(profile, rules.items);
    } catch (error) {
      replace(this.head, h("p", { class: "notice" }, error.message));
    }
  }

  show(profile, added) {
    this.name = profile.name;
    this.params = profile.params;
    this.drawHead(profile);
    this.drawParameters(profile);
    this.drawRules(profile);
    this.drawAdded(added);
    this.form.hidden = false;
  }

  drawHead(profile) {
    // Replacing an open list of options would close it.
    if (document.activeElement !== this.picker) {
      const names = this.profiles.map((one) => one.name);
      if (!names.includes(profile.name)) names.push(profile.name);
      replace(this.picker, names.map((name) => h("option", { value: name, selected: name === profile.name }, name)));
      this.picker.value = profile.name;
    }
    const pauseButton = profile.halted
      ? button("Resume faults", () => this.change(() => post("/faults/resume"), "Faults resumed"), { class: "primary" })
      : button("Pause faults", () => this.change(() => post("/faults/halt"), "Faults paused"), { class: "danger" });
    const children = [
      h("div", { class: "field-row" }, h("label", { for: "profile-picker" }, "Profile"), this.picker,
        h("label", { for: "profile-duration", class: "visually-hidden" }, "Duration"), this.duration, pauseButton,
        profile.name !== "healthy" && button("Off", () => this.change(() => remove("/profile"), "The profile is off"))),
      h("p", {}, visible(profile.summary ?? "")),
      h("p", { class: "quiet" }, `seed ${profile.seed}`, profile.ends_in_ms !== null ? [" · ends in ", countdown(profile.ends_in_ms)] : "",
        profile.halted ? " · paused: the profile, rules and magic device tokens have no effect" : ""),
    ];
    // Replacing a focused field would close it.
    if ([this.picker, this.duration].includes(document.activeElement)) return;
    replace(this.head, children);
  }

  drawParameters(profile) {
    const parameters = profile.knobs ?? [];
    this.parameters.hidden = !parameters.length;
    const isSame = this.parameters.dataset.profile === profile.name && this.parameters.contains(document.activeElement);
    if (isSame) return;
    this.parameters.dataset.profile = profile.name;
    const onChange = settled((name, value) => patch("/profile/params", { [name]: value }).then(() => this.load(), showError), 150);
    replace(this.parameters, h("h3", {}, "Parameters"), parameters.map((parameter) => parameterRow(parameter, onChange)));
  }

  drawRules(profile) {
    const rules = profile.rules ?? [];
    this.rules.hidden = !rules.length;
    replace(this.rules, h("h3", {}, "Rules of the profile"), table("Rules of the profile", ["Rule", "At", "Action", "Evaluated", "Fired", ""],
      rules.map((rule) => [h("code", {}, visible(rule.name)), rule.at, rule.action, count(rule.looked_at), fired(rule), this.why(rule)])));
  }

  drawAdded(rules) {
    this.added.hidden = !rules.length;
    replace(this.added, h("h3", {}, "Added rules"), table("Added rules", ["Rule", "Only for", "Evaluated", "Fired", "Ends", ""], rules.map((rule) => [
      h("code", {}, visible(rule.name)), [rule.scope && h("code", {}, visible(rule.scope, { limit: 100 })), rule.run && h("span", { class: "chip" }, `run ${rule.run}`), !rule.scope && !rule.run && h("span", { class: "quiet" }, "all pushes")],
      count(rule.looked_at), fired(rule), rule.ends_in_ms !== null ? ["in ", countdown(rule.ends_in_ms)] : "never",
      [this.why(rule), " ", button("Remove", () => this.change(() => remove(`/rules/${encodeURIComponent(rule.name)}`), `Removed ${rule.name}`), { class: "small", "aria-label": `Remove ${rule.name}` })],
    ])));
  }

  /** A button that shows the API's explanation of a rule. */
  why(rule) {
    return button("Why?", async () => {
      const explanation = await get(`/rules/${encodeURIComponent(rule.name)}/explain`).catch((error) => ({ text: error.message }));
      replace(this.explanation, h("h3", {}, "Evaluation of ", visible(rule.name)), h("pre", { class: "code" }, visible(explanation.text ?? "", { lines: true })));
      this.explanation.hidden = false;
      this.explanation.scrollIntoView({ block: "nearest" });
    }, { class: "small", "aria-label": `Why did ${rule.name} fire or not` });
  }

  pick(name) {
    const params = name === this.name ? { params: this.params } : {};
    const ttl = this.duration.value && name !== "healthy" ? { ttl: this.duration.value } : {};
    this.change(() => put("/profile", { name, ...params, ...ttl }), `${name} is active`);
  }

  /** Sends a change after the earlier ones, which may otherwise arrive later. */
  change(send, message) {
    this.picker.blur();
    this.duration.blur();
    return (this.changes = this.changes.then(send).then(() => showMessage(message), showError).then(() => this.load()));
  }
}

function fired(rule) {
  return h("strong", { class: rule.fired > 0 ? "is-hot" : "" }, count(rule.fired), rule.exhausted ? " · exhausted" : "");
}
