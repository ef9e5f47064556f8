// A form with every header and the payload of a push, which the server checks while it is edited.
import { ApiError, get, post } from "./api.js";
import { showError, showMessage } from "./copy.js";
import { span } from "./charts/scale.js";
import { CHECK_NAMES } from "./explain.js";
import { openDialog } from "./dialog.js";
import { button, h, replace, settled } from "./dom.js";
import { count } from "./format.js";
import { gauge } from "./gauge.js";
import { isExact } from "./jsondiff.js";
import { SAMPLES } from "./panels/samples.js";
import { SUFFIX } from "./preview/app.js";
import { previewOf } from "./preview/preview.js";
import { draftOf, resultOf } from "./resend.js";
import { isSuccess, object } from "./summary.js";
import { visible } from "./visible.js";

const TYPES = ["alert", "background", "voip", "liveactivity", "widgets", "controls", "pushtotalk", "complication", "fileprovider", "location", "mdm"];
const HEADERS = [
  ["apns-topic", "bundle id, with the type's suffix"], ["apns-push-type", "alert, background, …"], ["apns-priority", "10, 5 or 1"],
  ["apns-expiration", "UNIX seconds; 0 for one attempt"], ["apns-collapse-id", "at most 64 bytes"], ["apns-id", "a UUID; empty for a new one"],
];
// Members of aps that can be added, with a value to start from.
const MEMBERS = {
  alert: { title: "Title", body: "Text" }, badge: 1, sound: "default", "thread-id": "thread", category: "CATEGORY", "mutable-content": 1, "content-available": 1,
  "interruption-level": "time-sensitive", "relevance-score": 0.5, "filter-criteria": "focus", "target-content-id": "content", event: "update", "content-state": {}, "content-changed": true,
};
// What the topic has after the bundle id, by push type; nothing for the others.
const SUFFIXES = {
  voip: ".voip", liveactivity: ".push-type.liveactivity", widgets: ".push-type.widgets", controls: ".push-type.controls", pushtotalk: ".voip-ptt",
  complication: ".complication", fileprovider: ".pushkit.fileprovider", location: ".location-query",
};
const MAX_TIMES = 100;
const MAX_DEVICES = 200;

// The draft that was closed without being sent: `{seq, draft}`.
let kept = null;

/**
 * Opens the form with a copy of the push `seq`, or with a new push if it is null. `onSent(apnsID, result)` is called after a
 * push was sent.
 */
export async function openComposer(seq, onSent) {
  try {
    const isKept = kept?.seq === seq;
    const draft = isKept ? kept.draft : seq === null ? await newDraft() : await draftOf(seq);
    new Composer(seq, draft, onSent).open();
    if (isKept) showMessage("The draft is as you left it; Cancel discards it");
  } catch (error) {
    showError(error);
  }
}

/** A sample alert to the device of the newest push; of an empty inbox, to any. */
async function newDraft() {
  const page = await get("/pushes", { order: "desc", limit: 1, fields: "request.device_token,apns.topic" });
  const topic = page.items[0]?.apns?.topic ?? "com.example.app";
  const draft = sample(SAMPLES[0], topic.replace(SUFFIX, ""));
  return { ...draft, token: page.items[0]?.request?.device_token ?? "ab12".repeat(16) };
}

function sample(one, topic) {
  return { headers: one.headers(topic), payload: JSON.stringify(one.payload(), null, 2) };
}

class Composer {
  constructor(seq, draft, onSent) {
    this.seq = seq;
    this.onSent = onSent;
    this.devices = new Map(); // registered device tokens
    this.token = field("composer-token", draft.token);
    this.fields = HEADERS.map(([name, hint]) => ({ name, hint, input: field(`composer-${name}`, "") }));
    this.fields[1].input.setAttribute("list", "composer-types");
    this.others = h("textarea", { id: "composer-others", rows: "2", spellcheck: "false", class: "mono", placeholder: "name: value, one a line" });
    this.payload = h("textarea", { id: "composer-payload", rows: "12", spellcheck: "false", class: "mono", "aria-describedby": "composer-json" });
    this.json = h("p", { id: "composer-json", class: "composer-problem", role: "status" });
    this.size = h("div", {});
    this.device = h("p", { class: "quiet composer-device", role: "status" });
    this.picker = h("select", { id: "composer-device", on: { change: () => this.pick(this.picker.value) } });
    this.pickerLine = line("composer-device", "Registered device", this.picker);
    this.pickerLine.hidden = true;
    this.template = h("select", { id: "composer-template", on: { change: () => this.useSample(SAMPLES[this.template.value]) } }, SAMPLES.map((one, index) => h("option", { value: index }, one.name)));
    this.member = h("select", { "aria-label": "Add a member to aps", on: { change: () => this.addMember() } }, h("option", { value: "" }, "Add to aps …"), Object.keys(MEMBERS).map((name) => h("option", { value: name }, name)));
    this.times = h("input", { id: "composer-times", type: "number", min: 1, max: MAX_TIMES, value: 1, "aria-describedby": "composer-repeats" });
    this.repeats = h("p", { id: "composer-repeats", class: "quiet", hidden: true }, "After a response other than 200, an equal push counts as a retry: as a further attempt of the same push, with findings such as hot-retry. To send pushes of their own, change the payload for each.");
    this.preview = h("div", { class: "composer-preview", "aria-label": "Preview", role: "group" });
    this.verdict = h("div", { class: "composer-verdict", role: "status" });
    this.send = button("Send", () => this.sendNow(), { class: "primary" });
    this.check = settled(() => this.checkNow(), 250);
    this.fill(draft);
    this.original = JSON.stringify(this.draft);
  }

  fill({ headers, payload }) {
    const named = new Set(HEADERS.map(([name]) => name));
    for (const { name, input } of this.fields) input.value = headers[name] ?? "";
    this.others.value = Object.entries(headers).filter(([name]) => !named.has(name)).map(([name, value]) => `${name}: ${value}`).join("\n");
    this.payload.value = payload;
  }

  open() {
    this.dialog = openDialog(this.seq === null ? "New push" : "Edit and send again", { isWide: true },
      h("div", { class: "dialog-body composer" },
        h("div", { class: "composer-fields" },
          this.seq === null && line("composer-template", "Template", this.template), this.pickerLine,
          line("composer-token", "Device token", this.token), this.device,
          this.fields.map(({ name, hint, input }) => line(input.id, name, input, hint)),
          h("datalist", { id: "composer-types" }, TYPES.map((type) => h("option", { value: type }))),
          line("composer-others", "Other headers", this.others, "without authorization: a new token")),
        h("div", { class: "composer-payload" }, h("div", { class: "field-row" }, h("label", { for: "composer-payload" }, "Payload"), this.member, button("Format the payload", () => this.format(), { class: "small" })), this.payload, this.json, this.size),
        h("div", { class: "composer-result" }, this.verdict, this.preview)),
      this.repeats, h("p", { class: "dialog-buttons" }, h("span", { class: "quiet" }, "Esc keeps the draft."), h("span", { class: "bar-space" }), h("span", { class: "composer-times" }, h("label", { for: "composer-times" }, "Times"), this.times),
        button("Cancel", () => this.discard()), this.send));
    this.dialog.addEventListener("input", () => this.check());
    this.times.addEventListener("input", () => { this.repeats.hidden = !(Number(this.times.value) > 1); });
    // Rules and devices may have changed while another window was used.
    const check = () => this.check();
    addEventListener("focus", check);
    this.dialog.addEventListener("close", () => {
      removeEventListener("focus", check);
      this.keep();
    });
    // On a narrow screen the payload is below the fields.
    if (this.payload.getBoundingClientRect().top < innerHeight / 2) this.payload.focus();
    this.payload.setSelectionRange(0, 0);
    this.checkNow();
    this.loadDevices();
  }

  /** Keeps the draft of a form that is closed without being sent. */
  keep() {
    if (this.isDone || JSON.stringify(this.draft) === this.original) return;
    kept = { seq: this.seq, draft: this.draft };
    showMessage(this.seq === null ? "The draft is kept: New push opens it again" : `The draft is kept until you edit #${this.seq} again`);
  }

  discard() {
    kept = null;
    this.isDone = true;
    this.dialog.close();
  }

  async loadDevices() {
    const page = await get("/devices", { limit: MAX_DEVICES }).catch(() => null);
    if (!page?.items.length) return;
    this.devices = new Map(page.items.map((item) => [item.token, item]));
    this.pickerLine.hidden = false;
    replace(this.picker, h("option", { value: "" }, page.total > MAX_DEVICES ? `the first ${count(MAX_DEVICES)} of ${count(page.total)} device tokens` : "choose one"),
      page.items.map((item) => h("option", { value: item.token }, [item.device ?? item.token.slice(0, 12), item.bundle_id ?? item.topic, item.kind].filter(Boolean).join(" · "))));
    this.picker.value = this.devices.has(this.token.value.trim()) ? this.token.value.trim() : "";
  }

  /** Uses a registered device token, the topic of its app, and a push type that fits the token. */
  pick(token) {
    const item = this.devices.get(token);
    if (!item) return;
    this.token.value = token;
    const app = item.bundle_id ?? item.topic;
    const [{ input: topic }, { input: type }] = this.fields;
    if (item.kind && !kindsOf(type.value).includes(item.kind)) type.value = typeOf(item.kind);
    if (app) topic.value = app + (item.bundle_id ? item.kind ? SUFFIXES[type.value] ?? "" : SUFFIX.exec(topic.value)?.[0] ?? "" : "");
    this.checkNow();
  }

  /** Uses a registered device token that fits the push, if there is one: rather of the same device or app as the token in the form. */
  pickFitting() {
    const type = this.fields[1].input.value;
    let event = null;
    try {
      ({ event } = JSON.parse(this.payload.value).aps);
    } catch {
      // A payload without an event.
    }
    const kinds = type === "liveactivity" ? [event === "start" ? "liveactivity_start" : "liveactivity"] : kindsOf(type);
    const now = this.devices.get(this.token.value.trim());
    const app = this.fields[0].input.value.replace(SUFFIX, "");
    const rank = (item) => (item === now ? 4 : 0) + (now?.device && item.device === now.device ? 2 : 0) + (item.bundle_id === app ? 1 : 0);
    const [best] = [...this.devices.values()].filter((item) => kinds.includes(item.kind)).sort((one, other) => rank(other) - rank(one));
    if (!best) return;
    this.picker.value = best.token;
    this.pick(best.token);
  }

  /** Names the registered device of the token, and its state. */
  showDevice(item) {
    const states = item && [item.state, item.app_state, item.device_state].filter((one) => one && !["online", "enabled"].includes(one)).map((one) => one.replaceAll("_", " "));
    replace(this.device, item && [visible(item.device ?? "A registered device token"), `: ${states.length ? states.join(", ") : "online"}`]);
  }

  useSample(one) {
    this.fill(sample(one, this.fields[0].input.value.replace(SUFFIX, "") || "com.example.app"));
    this.pickFitting();
    this.checkNow();
  }

  /** Adds a member to aps. A payload that cannot be written without a change stays as it is. */
  addMember() {
    const name = this.member.value;
    this.member.value = "";
    try {
      const payload = JSON.parse(this.payload.value);
      if (!object(payload) || !isExact(this.payload.value)) throw new SyntaxError("not exact");
      payload.aps = { ...object(payload.aps), [name]: object(payload.aps)?.[name] ?? MEMBERS[name] };
      this.payload.value = JSON.stringify(payload, null, 2);
      this.checkNow();
    } catch {
      showMessage("Members can be added only to a JSON object without repeated names", true);
    }
  }

  get draft() {
    const headers = Object.fromEntries(this.fields.map(({ name, input }) => [name, input.value]).filter(([, value]) => value !== ""));
    for (const text of this.others.value.split("\n")) {
      const colon = text.indexOf(":", 1);
      if (colon > 0) headers[text.slice(0, colon).trim()] = text.slice(colon + 1).trim();
    }
    return { token: this.token.value.trim(), headers, payload: this.payload.value };
  }

  /** Asks the server what would happen to the push, without sending it. */
  async checkNow() {
    const request = (this.request = {});
    const { draft } = this;
    let found;
    let items;
    try {
      [found, { items }] = await Promise.all([post("/send", { ...draft, dry_run: true }), registered(draft.token)]);
    } catch (error) {
      if (this.request === request) this.showInvalid(error);
      return;
    }
    if (this.request !== request) return;
    const problem = found.payload_error;
    this.showDevice(items[0]);
    replace(this.json, problem && ["Not JSON: ", visible(problem), position(this.payload.value, problem)]);
    this.payload.setAttribute("aria-invalid", String(Boolean(problem)));
    replace(this.size, gauge(found.size));
    replace(this.verdict, prediction(found));
    replace(this.preview, previewOf({
      isPredicted: true, accepted: found.accepted, outcome: found.accepted ? "accepted" : "rejected", verdict: found, served: found.response,
      delivery: found.delivery, held_by: found.held_by, received_at: new Date().toISOString(),
      apns: { topic: draft.headers["apns-topic"], push_type: draft.headers["apns-push-type"], priority: Number(draft.headers["apns-priority"] ?? 10) },
      request: { payload: problem ? null : JSON.parse(draft.payload || "null"), payload_error: problem, size: found.size },
    }));
    this.send.disabled = false;
  }

  showInvalid(error) {
    replace(this.verdict, h("p", { class: "notice is-error" }, visible([error.message, error.hint].filter(Boolean).join(" — "))));
    this.send.disabled = error instanceof ApiError && error.status === 400;
  }

  async sendNow() {
    const times = Math.min(MAX_TIMES, Math.max(1, Math.floor(Number(this.times.value)) || 1));
    const results = new Map();
    let result = null;
    this.send.disabled = true;
    try {
      for (let sent = 0; sent < times && this.dialog.open; sent += 1) {
        if (times > 1) replace(this.verdict, h("p", { class: "notice" }, `Sending ${sent + 1} of ${times}. Esc stops.`));
        result = await post("/send", this.draft);
        results.set(resultOf(result), (results.get(resultOf(result)) ?? 0) + 1);
      }
      const text = [...results].map(([name, number]) => (times > 1 ? `${number} × ${name}` : name)).join(", ");
      if (result.apns_id) {
        this.discard();
        this.onSent(times > 1 ? null : result.apns_id, text);
        return;
      }
      replace(this.verdict, h("p", { class: "notice" }, `Sent: ${text}`));
    } catch (error) {
      this.showInvalid(error);
    }
    this.send.disabled = false;
  }

  format() {
    this.payload.value = formatted(this.payload.value);
    this.checkNow();
  }
}

/** The registered device token, as a page of the API. */
function registered(token) {
  return /^(?:[0-9a-f]{2}){1,200}$/i.test(token) ? get("/devices", { tokens: token }) : { items: [] };
}

// What the client would learn without a response.
const ENDINGS = { reset: "The stream would be reset", refused: "The stream would be refused", disconnected: "The connection would end without a response", pending: "There would be no response" };

/** What the response would be: by APNs' checks, and by the active rules that would fire. */
function prediction({ status, reason, checks, rules, response, accepted, payload_error: problem }) {
  const failed = checks.find((one) => !one.ok);
  const own = [h("strong", {}, `APNs would respond ${status} ${reason ?? ""}`.trim()), failed ? [": ", visible(failed.detail ?? CHECK_NAMES[failed.check] ?? failed.check)] : "."];
  const dropped = accepted && problem ? " A device drops it, because the payload is not JSON." : "";
  if (!rules.length) return h("p", { class: `notice ${accepted ? "is-good" : "is-error"}` }, own, dropped);
  const delay = response.delay_ms ? ` after ${span(response.delay_ms)}` : "";
  const end = ENDINGS[response.ending] ?? `The response would be ${[response.status, response.reason].filter(Boolean).join(" ")}`;
  return h("p", { class: `notice ${isSuccess(response.status) ? "is-good" : "is-error"}` }, h("strong", {}, end, delay), rules.length > 1 ? ": the rules " : ": the rule ",
    rules.map((rule, index) => [index > 0 && ", ", h("code", {}, visible(rule.rule)), rule.profile ? [" of ", visible(rule.profile)] : "", ` (${rule.action.replaceAll("_", " ")})`]), " would fire. ",
    isSuccess(response.status) || !accepted ? "" : "APNs would accept the push all the same. ", "Without ", rules.length > 1 ? "them, " : "it, ", own, dropped);
}

/** The kinds of registered device tokens that get the pushes of a type. */
function kindsOf(type) {
  if (type === "liveactivity") return ["liveactivity", "liveactivity_start"];
  return type === "background" ? ["background", "alert"] : [type];
}

/** The push type for a kind of device tokens. */
function typeOf(kind) {
  return kind === "liveactivity_start" ? "liveactivity" : kind;
}

function field(id, value) {
  const input = h("input", { id, type: "text", spellcheck: "false", autocomplete: "off", class: "mono" });
  input.value = value;
  return input;
}

function line(id, name, input, hint = null) {
  if (hint) input.setAttribute("aria-describedby", `${id}-hint`);
  return h("div", { class: "composer-line" }, h("label", { for: id }, name), hint && h("span", { class: "quiet composer-hint", id: `${id}-hint` }, hint), input);
}

/** JSON with line breaks. Numbers that JavaScript cannot represent stay unformatted, as does other text. */
function formatted(text) {
  try {
    return isExact(text) ? JSON.stringify(JSON.parse(text), null, 2) : text;
  } catch {
    return text;
  }
}

/** The line and the column of a problem, whose text has the offset in bytes. */
function position(text, problem) {
  const offset = /(?:byte|offset|position) (\d+)/.exec(problem)?.[1];
  if (offset === undefined) return "";
  const before = new TextDecoder().decode(new TextEncoder().encode(text).slice(0, Number(offset)));
  const lines = before.split("\n");
  return ` (line ${lines.length}, column ${lines.at(-1).length + 1})`;
}
