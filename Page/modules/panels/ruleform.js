// A form that writes a rule, checks it as it is edited, and shows how many recorded pushes it would have applied to.
import { post, request } from "../api.js";
import { showMessage } from "../copy.js";
import { button, h, replace, settled } from "../dom.js";
import { count, counted } from "../format.js";
import { object } from "../summary.js";
import { visible } from "../visible.js";

// The actions that the form offers: key, label, and the fields of each with their default.
const ACTIONS = [
  ["respond", "Respond with an error", [["status", "Status", "503"], ["reason", "Reason", "ServiceUnavailable"]]],
  ["delay", "Delay the response", [["fixed", "By", "2s"]]],
  ["hang", "Never respond", []],
  ["reset_stream", "Reset the stream", []],
  ["goaway", "Send GOAWAY", []],
  ["close", "Close the connection", []],
  ["reset_connection", "Reset the connection", []],
];
const MAX_PROBLEMS = 5;
// The members of a condition that a rule compares literally.
const LITERAL = new Set(["topic", "device_token", "collapse_id", "apns_id"]);

export class RuleForm {
  /** `actions`: `open(seq)`, `reload()`. */
  constructor(actions) {
    this.actions = actions;
    const input = (id, value, props = {}) => {
      const field = h("input", { id: `rule-${id}`, autocomplete: "off", spellcheck: "false", ...props, on: { input: () => this.write(id) } });
      field.value = value;
      return field;
    };
    this.fields = {
      name: input("name", "outage", { class: "mono" }), q: input("q", "", { class: "mono", placeholder: "topic:com.example.* type:alert" }),
      probability: input("probability", "1", { type: "number", min: 0, max: 1, step: "0.05" }), times: input("times", "", { type: "number", min: 1, placeholder: "no limit" }), ttl: input("ttl", "5m", { placeholder: "no limit" }),
    };
    this.action = h("select", { id: "rule-action", on: { change: () => this.changeAction("action") } }, ACTIONS.map(([key, label]) => h("option", { value: key }, label)));
    this.parameters = h("div", { class: "fields" });
    this.text = h("textarea", { id: "rule-text", rows: "13", spellcheck: "false", class: "mono", on: { input: () => this.check() } });
    this.result = h("div", { role: "status", class: "rule-result" });
    this.check = settled(() => this.preview(), 250);
    const field = (label, element, note) => h("div", { class: "field" }, h("label", { for: element.id }, label), element, note && h("p", { class: "quiet" }, note));
    const { name, q, probability, times, ttl } = this.fields;
    this.element = h("details", { class: "card rule-form", on: { toggle: () => this.element.open && this.preview() } }, h("summary", {}, "Add a rule"),
      h("div", { class: "fields" }, field("Name", name), field("Pushes", q, "A search; without one, all pushes."), field("Action", this.action)), this.parameters,
      h("div", { class: "fields" }, field("Probability", probability), field("Fire at most", times), field("Remove after", ttl)),
      h("label", { for: "rule-text", class: "block" }, "JSON with the syntax of a profile file"), this.text, this.result,
      h("p", {}, button("Add the rule", () => this.add(), { class: "primary" })));
    this.changeAction();
  }

  changeAction(changed = null) {
    const [, , parameters] = ACTIONS.find(([key]) => key === this.action.value);
    this.values = parameters.map(([key, label, value]) => {
      const field = h("input", { id: `rule-action-${key}`, class: "mono", autocomplete: "off", spellcheck: "false", on: { input: () => this.write("action") } });
      field.value = value;
      return { key, label, field };
    });
    this.parameters.hidden = !this.values.length;
    replace(this.parameters, this.values.map(({ label, field }) => h("div", { class: "field" }, h("label", { for: field.id }, label), field)));
    this.write(changed);
  }

  /**
   * Writes the fields as JSON: all of them, or into an existing rule what the changed one determines. Everything else that
   * was written by hand stays.
   */
  write(changed) {
    let rule = {};
    if (changed !== null) {
      try {
        rule = JSON.parse(this.text.value);
      } catch {
        rule = null;
      }
      if (object(rule) === null) {
        this.refused = this.text.value;
        return replace(this.result, h("p", { class: "notice is-error" }, "The fields cannot change the rule, because its JSON is not valid. Correct it, or ",
          button("write it anew from the fields", () => this.write(null), { class: "small" })));
      }
    }
    const { name, q, probability, times, ttl } = this.fields;
    const set = (of, key, value) => { if (value === "" || value === null) delete of[key]; else of[key] = value; };
    const part = (key, members) => {
      const value = { ...object(rule[key]) };
      for (const [member, content] of Object.entries(members)) set(value, member, content);
      set(rule, key, Object.keys(value).length ? value : null);
    };
    const writers = {
      name: () => set(rule, "name", name.value.trim()), q: () => part("when", { q: q.value.trim() }),
      probability: () => part("trigger", { probability: probability.value === "" || Number(probability.value) === 1 ? null : Number(probability.value) }),
      times: () => part("trigger", { times: times.value ? Number(times.value) : null }),
      action: () => {
        rule.do = { [this.action.value]: Object.fromEntries(this.values.filter(({ field }) => field.value.trim())
          .map(({ key, field }) => [key, key === "status" ? Number(field.value) || field.value : field.value.trim()])) };
      },
      ttl: () => set(rule, "ttl", ttl.value.trim()),
    };
    for (const write of changed === null ? Object.values(writers) : [writers[changed]]) write();
    this.text.value = JSON.stringify(rule, null, 2);
    return this.check();
  }

  async preview() {
    if (!this.element.open) return;
    const text = this.text.value;
    let rule;
    try {
      rule = JSON.parse(text);
    } catch (error) {
      // What the fields could not change is said, with the way out, until the text changes.
      if (text === this.refused) return null;
      return replace(this.result, h("p", { class: "notice is-error" }, `This is not JSON: ${error.message}`));
    }
    const found = await post("/faults/preview", rule).catch((error) => ({ valid: false, problems: [{ message: error.message, hint: error.hint }] }));
    if (text !== this.text.value) return;
    replace(this.result, found.problems.length > 0 && problemList(found.problems, !found.valid), patterns(rule.when).map(([name, value]) => h("p", { class: "notice is-error" },
      h("code", {}, visible(`${name}: ${value}`, { limit: 120 })), " is compared literally, with the asterisk. Use ", h("code", {}, visible(`"q": "${name}:${value}"`, { limit: 120 })), " for a pattern.")),
    found.valid && this.matches(found));
  }

  matches(found) {
    if (found.pushes === null) return h("p", { class: "notice" }, "This rule applies to connections, so it is not evaluated for recorded pushes.");
    if (!found.pushes) return h("p", { class: "notice" }, "No pushes are recorded, so the rule cannot be tried.");
    const missed = Object.entries(found.missed)[0];
    return h("div", { class: "notice" },
      h("p", {}, h("strong", {}, `${count(found.matched)} of the last ${counted(found.pushes, "push", "pushes")}`), " would have matched",
        found.would_fire !== found.matched ? `; with the probability, the rule would have fired for ${count(found.would_fire)}.` : "."),
      missed && found.matched < found.pushes && h("p", { class: "quiet" }, "Most others failed: ", h("code", {}, visible(missed[0], { limit: 80 })), ` (${count(missed[1])})`),
      found.newest.length > 0 && h("div", { class: "panel-actions" }, found.newest.slice(0, 8).map((seq) => button(`#${seq}`, () => this.actions.open(seq), { class: "small", "aria-label": `Open push ${seq}` }))));
  }

  async add() {
    try {
      await request("POST", "/rules", { body: this.text.value });
      showMessage("Rule added");
    } catch (error) {
      replace(this.result, h("p", { class: "notice is-error" }, error.message, error.hint ? ` — ${error.hint}` : ""));
    }
    this.actions.reload();
  }
}

function problemList(problems, isError) {
  return h("ul", { class: `notice${isError ? " is-error" : ""}` }, problems.slice(0, MAX_PROBLEMS).map((one) =>
    h("li", {}, visible([one.path, one.message, one.hint].filter(Boolean).join(" — "), { limit: 500 }))));
}

/** The members of a condition that look like patterns but are not. */
function patterns(when) {
  return Object.entries(object(when) ?? {}).filter(([name, value]) => LITERAL.has(name) && typeof value === "string" && value.includes("*"));
}
