// Completion of fields and values in the search field: an ARIA combobox with a list of suggestions.
import { get, hasServer } from "./api.js";
import { h, replace } from "./dom.js";
import { count, tail } from "./format.js";
import { nextSnapshot, recount, snapshot } from "./snapshot.js";
import { OUTCOMES, outcomeText } from "./outcomes.js";
import { KIND_NAMES } from "./summary.js";
import { conditions, quoted, tokenSearch } from "./terms.js";
import { visible } from "./visible.js";

/** The fields of the query language, each with its meaning. */
export const FIELDS = [
  ["status", "the response status: 503, >=500, 5*"], ["reason", "the response reason"],
  ["outcome", "accepted, rejected, response_lost, unanswered, unprocessed, incomplete, malformed, pending"], ["topic", "the topic; * matches any text"],
  ["type", "the push type"], ["token", "the device token"], ["text", "anywhere in the push"],
  ["payload./", "a JSON pointer into the payload"], ["header.", "a request header"], ["larger", "the payload size"],
  ["smaller", "the payload size"], ["is", "retry, first, pending, duplicate"], ["finding", "a finding; * for any"],
  ["rule", "the fault rule that fired"], ["profile", "the fault profile"], ["delivery", "the delivery to a registered device"],
  ["kind", "push, broadcast, channel"], ["connection", "the connection"], ["attempt", "the number of the attempt"],
  ["priority", "10, 5 or 1"], ["id", "the apns-id"], ["collapse", "the collapse id"], ["push_key", "all attempts of a push"],
  ["accepted", "whether APNs accepted the push"], ["environment", "sandbox, production"], ["listener", "the number of the listener"],
  ["key_id", "the key of the provider token"], ["team_id", "the team"], ["run", "the run, such as r1"], ["test", "the test"], ["since", "a time, or an age such as -5m"],
  ["until", "a time, or an age such as -5m"],
];
const WORDS = {
  outcome: OUTCOMES, is: ["retry", "first", "pending", "duplicate", "faulted", "deviating"],
  decision: ["accepted", "rejected", "not_processed", "pending"],
  ending: ["response", "refused", "malformed", "reset", "cancelled", "incomplete", "disconnected", "pending"],
  kind: ["push", "broadcast", "channel", "*"], accepted: ["true", "false"], environment: ["sandbox", "production"], priority: ["10", "5", "1"],
  since: ["-1m", "-5m", "-1h", "-24h"], until: ["-1m", "-5m", "-1h", "-24h"], larger: ["1K", "3.5K", "4K"], smaller: ["1K", "3.5K", "4K"],
  "payload./": ["aps/alert/title", "aps/alert/body", "aps/badge", "aps/sound", "aps/category", "aps/event"],
  "header.": ["apns-id", "apns-priority", "apns-expiration", "apns-collapse-id"],
};
// The fields whose values are in the statistics.
const COUNTED = { topic: "topic", status: "status", reason: "reason", type: "push_type", push_type: "push_type", rule: "rule" };
// The fields whose values are suggested for a word: the heading, and the member of the statistics; null for findings.
const VALUE_GROUPS = {
  status: ["Responses", "status"], reason: ["Reasons", "reason"], outcome: ["Outcomes", "outcome"], topic: ["Topics", "topic"], type: ["Push types", "push_type"],
  rule: ["Fault rules", "rule"], finding: ["Findings", null],
};
const FIELD_GROUP = "Fields";
// What the page writes for a value, if that is something else.
const SHOWN_AS = {
  outcome: outcomeText, type: (type) => [KIND_NAMES[type], type === "background" && "silent", type === "liveactivity" && "live activity"].filter(Boolean).join(" "),
};
const MAX_DEVICES = 200;
const MAX_OF_FIELD = 4;
const SHOWN = 12;

export class Completion {
  /** `field` is the text field; `onAccept()` is called after a suggestion was inserted, `rows()` returns rows with values. */
  constructor(field, { onAccept, rows }) {
    this.field = field;
    this.onAccept = onAccept;
    this.rows = rows;
    this.options = [];
    this.active = -1;
    this.element = h("div", { class: "completion", id: "search-options", role: "listbox", "aria-label": "Suggestions", hidden: true });
    for (const [name, value] of [["role", "combobox"], ["aria-autocomplete", "list"], ["aria-expanded", "false"], ["aria-controls", "search-options"]]) {
      field.setAttribute(name, value);
    }
    field.addEventListener("blur", () => this.close());
  }

  get isOpen() {
    return !this.element.hidden;
  }

  /** The condition that is being written: its start in the text, its negation, field and value. */
  get word() {
    const before = this.field.value.slice(0, this.field.selectionStart ?? this.field.value.length);
    // From the beginning, because only there it is known which quotation mark opens a text.
    const last = [...before.matchAll(/(?:[^\s"]|"(?:[^"\\]|\\.)*(?:"|$))+/g)].at(-1);
    const start = last && last.index + last[0].length === before.length ? last.index : before.length;
    const parts = /^([!-]?)(?:(payload\.\/|header\.)|([a-z_]+)[:=])?(.*)$/s.exec(before.slice(start));
    return { start, end: before.length, sign: parts[1], field: parts[2] ?? parts[3] ?? null, value: parts[4].replace(/^"/, "") };
  }

  /** Suggests what fits the text before the cursor; without text only if it is asked for. */
  async update({ isAsked = false } = {}) {
    const word = this.word;
    const request = (this.request = {});
    if (word.field === null && word.value === "" && !isAsked) return this.close();
    const fields = word.field === null ? fieldsFor(word) : [];
    if (fields.length) this.show(fields.slice(0, SHOWN), word); // The counted values follow.
    const values = await (word.field === null ? this.anyValues(word, fields) : this.valuesOf(word)).catch(() => []);
    if (this.request !== request || document.activeElement !== this.field) return;
    const { active } = this;
    this.show([...fields.slice(0, values.length ? SHOWN / 2 : SHOWN), ...values].slice(0, SHOWN), word);
    if (active >= 0 && active < Math.min(fields.length, this.options.length)) this.move(active + 1);
  }

  /** Values of any field that a word is part of, grouped by field, with their numbers: as the API has them, or as the page writes them. */
  async anyValues({ value }) {
    const wanted = value.toLowerCase();
    if (wanted.length < 2) return [];
    const isFound = (field, name) => name.toLowerCase().includes(wanted) || (SHOWN_AS[field]?.(name) ?? "").toLowerCase().includes(wanted);
    const number = /^#?([0-9]{1,15})$/.exec(value);
    const found = number ? [{ text: `#${number[1]}`, value: `#${number[1]}`, note: "the push with this number", group: "Number" }] : [];
    const [{ all }, findings, devices] = await Promise.all([this.counts(), this.known("finding"), this.devicesOf(wanted)]);
    const values = { ...Object.fromEntries(Object.entries(VALUE_GROUPS).map(([field, [, member]]) => [field, member ? Object.entries(all[member].counts) : []])), finding: findings.map(([name, note]) => [name, note]) };
    for (const [field, [group]] of Object.entries(VALUE_GROUPS)) {
      for (const [name, number] of values[field].filter(([name]) => name.length > 1 && isFound(field, name)).slice(0, MAX_OF_FIELD)) {
        found.push({ text: `${field}:${quoted(name)}`, value: name, note: typeof number === "number" ? count(number) : number, group });
      }
    }
    return [...found, ...devices];
  }

  /** Devices whose name has the text: a device is searched by its device tokens. */
  async devicesOf(wanted) {
    if (!hasServer()) return [];
    const { items } = await get("/devices", { search: wanted, limit: MAX_DEVICES }).catch(() => ({ items: [] }));
    const tokens = Map.groupBy(items.filter((one) => one.device?.toLowerCase().includes(wanted)), (one) => one.device);
    return [...tokens].slice(0, MAX_OF_FIELD).map(([name, all]) => ({ text: tokenSearch(all.map((one) => one.token)), label: `device ${name}`, value: name, note: "the pushes to this device", group: "Devices" }));
  }

  async valuesOf(word) {
    const wanted = word.value.toLowerCase();
    const values = WORDS[word.field]?.map((value) => [value, ""]) ?? await this.known(word.field);
    return values.filter(([value]) => value.toLowerCase().includes(wanted) && value !== word.value).map(([value, note]) => ({ value, note }));
  }

  /** The values of a field that the inbox has, with their numbers. */
  async known(field) {
    if (COUNTED[field]) return Object.entries((await this.counts()).all[COUNTED[field]].counts).map(([value, number]) => [value, count(number)]);
    if (field === "finding") return [["*", "any"], ...((await this.counts()).findings?.items ?? []).map((one) => [one.finding, count(one.count)])];
    if (field === "connection") return (await get("/connections")).items.slice(0, 50).map((one) => [one.id, one.state]);
    const of = { token: (row) => row.request?.device_token, device_token: (row) => row.request?.device_token, collapse: (row) => row.apns?.collapse_id,
      attempt: (row) => String(row.attempt), id: (row) => row.apns?.id }[field];
    return of ? [...new Set([...this.rows()].map(of).filter(Boolean))].map((value) => [value, ""]) : [];
  }

  /** What is counted of the pushes. */
  async counts() {
    if (!snapshot.counts) recount();
    while (!snapshot.counts) {
      await nextSnapshot();
      if (!snapshot.counts && snapshot.failure) throw snapshot.failure;
    }
    return snapshot.counts;
  }

  show(found, word) {
    this.options = found;
    this.target = word;
    this.active = -1;
    this.element.hidden = !found.length;
    this.field.setAttribute("aria-expanded", String(found.length > 0));
    this.field.removeAttribute("aria-activedescendant");
    replace(this.element, found.map(({ value, note, group }, index) => [group && group !== found[index - 1]?.group && h("div", { class: "completion-group quiet", role: "presentation" }, group), h("div", {
      class: "completion-option", role: "option", id: `search-option-${index}`, "aria-selected": "false",
      // The field keeps the focus.
      on: { pointerdown: (event) => event.preventDefault(), click: () => this.accept(index) },
    }, h("span", { class: "completion-value" }, group === FIELD_GROUP ? value : visible(value.length > 80 ? tail(value) : value)), h("span", { class: "quiet" }, note))]));
  }

  close() {
    this.request = null;
    this.show([], null);
  }

  move(step) {
    const number = this.options.length;
    this.active = this.active < 0 ? (step > 0 ? 0 : number - 1) : (this.active + step + number) % number;
    const elements = [...this.element.querySelectorAll("[role=option]")];
    for (const [index, element] of elements.entries()) element.setAttribute("aria-selected", String(index === this.active));
    this.field.setAttribute("aria-activedescendant", `search-option-${this.active}`);
    elements[this.active].scrollIntoView({ block: "nearest" });
  }

  /** Inserts a suggestion. After a field its values are suggested. */
  accept(index) {
    const { start, end, sign, field } = this.target;
    const { value, text: term } = this.options[index];
    const isField = field === null && term === undefined;
    const text = term ? conditions(term).map((one) => sign + one.text).join(" ") : isField ? `${sign}${value}${/[./]$/.test(value) ? "" : ":"}`
      : /[./]$/.test(field) ? `${sign}${field}${value}:` : `${sign}${field}:${/^[-*\w.>=<]+$/.test(value) ? value : quoted(value)}`;
    const isWhole = !text.endsWith(":") && !isField;
    const rest = this.field.value.slice(end).replace(/^[^\s]*/, "");
    const inserted = this.field.value.slice(0, start) + text + (isWhole && !rest.startsWith(" ") ? " " : "");
    this.field.value = inserted + rest;
    this.field.setSelectionRange(inserted.length, inserted.length);
    this.field.focus();
    if (isWhole) {
      this.close();
      this.onAccept();
    } else this.update();
  }

  /** Handles a key; returns whether it was for the list. */
  onKey(event) {
    if (event.key === "ArrowDown" && !this.isOpen) this.update({ isAsked: true });
    else if (this.isOpen && (event.key === "ArrowDown" || event.key === "ArrowUp")) this.move(event.key === "ArrowDown" ? 1 : -1);
    else if (this.isOpen && event.key === "Escape") this.close();
    else if (this.isOpen && (event.key === "Enter" || event.key === "Tab") && this.active >= 0) this.accept(this.active);
    else return false;
    event.preventDefault();
    event.stopPropagation();
    return true;
  }
}

function fieldsFor(word) {
  const wanted = word.value.toLowerCase();
  return FIELDS.filter(([name, meaning]) => name.startsWith(wanted) || (wanted.length > 2 && meaning.includes(wanted)))
    .map(([value, note]) => ({ value, note, group: FIELD_GROUP }));
}
