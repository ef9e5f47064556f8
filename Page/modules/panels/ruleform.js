// A form for a rule: fields beside its JSON, of which each follows the other. It is checked while it is edited, and shows how many
// recorded pushes it would have applied to.
import { post, request } from "../api.js";
import { showMessage } from "../copy.js";
import { button, h, replace, settled } from "../dom.js";
import { count, counted } from "../format.js";
import { isExact } from "../jsondiff.js";
import { object } from "../summary.js";
import { visible } from "../visible.js";
import { REASONS, statusOf } from "./reasons.js";

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
// The fields: where their value is in the rule, their value if it is absent, and whether it is a number.
const FIELDS = {
  name: { path: ["name"] }, q: { path: ["when", "q"] }, probability: { path: ["trigger", "probability"], absent: "1", isNumber: true },
  times: { path: ["trigger", "times"], isNumber: true }, ttl: { path: ["ttl"] },
};
const FIRST_RULE = { name: "outage", do: { respond: { status: 503, reason: "ServiceUnavailable" } }, ttl: "5m" };
const OTHER_ACTION = "other";
const MAX_PROBLEMS = 5;
const MAX_UNSEEN = 6;
// The members of a condition that a rule compares literally.
const LITERAL = new Set(["topic", "device_token", "collapse_id", "apns_id"]);

export class RuleForm {
  /** `actions`: `open(seq)`, `reload()`. */
  constructor(actions) {
    this.actions = actions;
    const input = (id, props = {}) => h("input", { id: `rule-${id}`, autocomplete: "off", spellcheck: "false", ...props, on: { input: () => this.change((rule) => this.write(rule, id)) } });
    this.fields = {
      name: input("name", { class: "mono" }), q: input("q", { class: "mono", placeholder: "topic:com.example.* type:alert" }),
      probability: input("probability", { type: "number", min: 0, max: 1, step: "0.05" }), times: input("times", { type: "number", min: 1, placeholder: "no limit" }), ttl: input("ttl", { placeholder: "no limit" }),
    };
    this.action = h("select", { id: "rule-action", on: { change: () => this.changeAction() } }, ACTIONS.map(([key, label]) => h("option", { value: key }, label)),
      h("option", { value: OTHER_ACTION, disabled: true, hidden: true }, "As in the JSON"));
    this.parameters = h("div", { class: "fields" });
    this.unseen = h("p", { class: "quiet", role: "status" });
    this.text = h("textarea", { id: "rule-text", rows: "13", spellcheck: "false", class: "mono", on: { input: () => this.follow() } });
    this.result = h("div", { role: "status", class: "rule-result" });
    this.check = settled(() => this.preview(), 250);
    const field = (label, element, note) => h("div", { class: "field" }, h("label", { for: element.id }, label), element, note && h("p", { class: "quiet" }, note));
    const { name, q, probability, times, ttl } = this.fields;
    this.element = h("details", { class: "card rule-form", on: { toggle: () => this.element.open && this.preview() } }, h("summary", {}, "Add a rule"),
      h("div", { class: "rule-views" },
        h("div", {}, h("div", { class: "fields" }, field("Name", name), field("Pushes", q, "A search; without one, all pushes."), field("Action", this.action)), this.parameters,
          h("div", { class: "fields" }, field("Probability", probability), field("Fire at most", times), field("Remove after", ttl)), this.unseen),
        h("div", {}, h("label", { for: "rule-text", class: "block" }, "JSON with the syntax of a profile file"), this.text)),
      this.result,
      h("p", {}, button("Add the rule", () => this.add(), { class: "primary" })));
    this.set(FIRST_RULE);
    this.show(FIRST_RULE);
  }

  /** The rule in the JSON; null if it is not an object in JSON. */
  get rule() {
    try {
      return object(JSON.parse(this.text.value));
    } catch {
      return null;
    }
  }

  set(rule) { this.text.value = JSON.stringify(rule, null, 2); }

  /** Changes the rule by what a field says. Everything that no field shows stays. */
  change(write) {
    const { rule } = this;
    if (rule === null || !isExact(this.text.value)) return this.refuse();
    write(rule);
    this.set(rule);
    this.showUnseen(rule);
    return this.check();
  }

  refuse() {
    this.refused = this.text.value;
    replace(this.result, h("p", { class: "notice is-error" }, "The fields cannot change the rule, because its JSON is not valid, or has what would be lost: a repeated member or another notation. Correct it, or ",
      button("write it anew from the fields", () => this.writeAnew(), { class: "small" })));
  }

  writeAnew() {
    const rule = {};
    for (const id of Object.keys(FIELDS)) if (!this.fields[id].disabled) this.write(rule, id);
    this.writeAction(rule);
    this.set(rule);
    this.show(rule);
    this.check();
  }

  write(rule, id) {
    const { path, absent, isNumber } = FIELDS[id];
    const text = this.fields[id].value.trim();
    setAt(rule, path, text === "" || text === absent ? undefined : isNumber ? Number(text) : text);
  }

  changeAction() {
    this.showParameters(Object.fromEntries(parametersOf(this.action.value).map(([key, , value]) => [key, value])));
    this.change((rule) => this.writeAction(rule));
  }

  /** Writes the action with its fields. */
  writeAction(rule) {
    if (this.action.value === OTHER_ACTION) return;
    rule.do = { [this.action.value]: {} };
    for (const [key] of parametersOf(this.action.value)) this.put(rule, key, this.parameter(key).value.trim());
  }

  /** Writes a field of the action. A status and a reason of APNs that do not belong together are not left beside each other. */
  writeParameter(rule, key) {
    this.put(rule, key, this.parameter(key).value.trim());
    const [status, reason] = [this.parameter("status")?.value, this.parameter("reason")?.value];
    if (key === "status" && /^\d{3}$/.test(status) && (reason === "" || statusOf(reason)) && statusOf(reason) !== Number(status)) this.put(rule, "reason", REASONS[status]?.[0] ?? "");
    if (key === "reason" && statusOf(reason) && statusOf(reason) !== Number(status)) this.put(rule, "status", String(statusOf(reason)));
  }

  /** The field of a parameter of the action; null if the action does not have it. */
  parameter(key) { return this.parameters.querySelector(`#rule-action-${key}`); }

  /** Writes a parameter of the action, and shows it in its field. */
  put(rule, key, text) {
    this.parameter(key).value = text;
    setAt(rule.do[this.action.value] ??= {}, [key], text === "" ? undefined : key === "status" ? Number(text) || text : text);
  }

  /** Shows in the fields what was written as JSON. */
  follow() {
    const { rule } = this;
    if (rule) this.show(rule);
    else replace(this.unseen, "The fields do not follow the JSON until it is valid.");
    this.check();
  }

  show(rule) {
    for (const [id, { path, absent = "" }] of Object.entries(FIELDS)) {
      const value = path.reduce((of, key) => (object(of) ? of[key] : of), rule);
      const isShown = value === undefined || value === null || (typeof value !== "object" && object(path.length > 1 ? rule[path[0]] : rule) !== null);
      this.fields[id].disabled = !isShown;
      this.fields[id].value = isShown ? value ?? absent : "";
    }
    const action = actionOf(rule);
    this.action.value = action ?? OTHER_ACTION;
    this.showParameters(action && (object(rule.do[action]) ?? {}));
    this.showUnseen(rule);
  }

  showParameters(values) {
    const parameters = values ? parametersOf(this.action.value) : [];
    this.parameters.hidden = !parameters.length;
    replace(this.parameters, parameters.map(([key, label]) => {
      const field = h("input", { id: `rule-action-${key}`, class: "mono", autocomplete: "off", spellcheck: "false", list: key === "reason" ? "rule-reasons" : null, disabled: object(values[key]) !== null, on: { input: () => this.change((rule) => this.writeParameter(rule, key)) } });
      field.value = object(values[key]) ? "" : values[key] ?? "";
      return h("div", { class: "field" }, h("label", { for: field.id }, label), field);
    }), parameters.some(([key]) => key === "reason") && h("datalist", { id: "rule-reasons" }, Object.entries(REASONS).flatMap(([status, reasons]) => reasons.map((reason) => h("option", { value: reason }, status)))));
  }

  /** Names the members of the rule that no field shows. */
  showUnseen(rule) {
    const paths = unseen(rule);
    const more = paths.length > MAX_UNSEEN ? ` and ${paths.length - MAX_UNSEEN} more` : "";
    replace(this.unseen, paths.length > 0 && ["No field shows ", paths.slice(0, MAX_UNSEEN).map((path, index) => [index > 0 && ", ", h("code", {}, visible(path, { limit: 60 }))]), more, ": change it in the JSON."]);
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
    replace(this.result, found.problems.length > 0 && problemList(found.problems, !found.valid), patterns(rule?.when).map(([name, value]) => h("p", { class: "notice is-error" },
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

const parametersOf = (action) => ACTIONS.find(([key]) => key === action)?.[2] ?? [];

/** The action of a rule, if the form offers it; null otherwise. */
function actionOf(rule) {
  const keys = Object.keys(object(rule.do) ?? {});
  const value = object(rule.do)?.[keys[0]];
  return keys.length === 1 && ACTIONS.some(([key]) => key === keys[0]) && (value === null || object(value)) ? keys[0] : null;
}

/** Sets a member, or removes it if the value is undefined, and with it the objects that it leaves empty. */
function setAt(of, [key, ...rest], value) {
  if (rest.length) {
    if (!object(of[key])) of[key] = {};
    setAt(of[key], rest, value);
    if (!Object.keys(of[key]).length) delete of[key];
  } else if (value === undefined) delete of[key];
  else of[key] = value;
}

/** The paths of what the fields do not show. */
function unseen(rule) {
  const action = actionOf(rule);
  const shown = [...Object.values(FIELDS).map(({ path }) => path.join(".")), ...parametersOf(action).map(([key]) => `do.${action}.${key}`)];
  const walk = (value, path) => {
    const isOpen = ["", "when", "trigger"].includes(path) || path === "do" || path === `do.${action}`;
    if (object(value) && isOpen) return Object.entries(value).flatMap(([key, one]) => walk(one, path ? `${path}.${key}` : key));
    return (shown.includes(path) && object(value) === null && !Array.isArray(value)) || path === `do.${action}` ? [] : [path];
  };
  return walk(rule, "");
}
