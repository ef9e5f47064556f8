// A form with every header and the payload of a push, which the server checks while it is edited.
import { ApiError, post } from "./api.js";
import { showError } from "./copy.js";
import { CHECK_NAMES } from "./explain.js";
import { openDialog } from "./dialog.js";
import { button, h, replace, settled } from "./dom.js";
import { gauge } from "./gauge.js";
import { isExact } from "./jsondiff.js";
import { draftOf, resultOf } from "./resend.js";
import { isSuccess } from "./summary.js";
import { visible } from "./visible.js";

const TYPES = ["alert", "background", "voip", "liveactivity", "widgets", "controls", "pushtotalk", "complication", "fileprovider", "location", "mdm"];
const HEADERS = [
  ["apns-topic", "the bundle id of the app, with the suffix of the push type"], ["apns-push-type", "alert, background, …"], ["apns-priority", "10, 5 or 1"],
  ["apns-expiration", "UNIX seconds; 0 for one attempt"], ["apns-collapse-id", "at most 64 bytes"], ["apns-id", "a UUID; empty for a new one"],
];

/** Opens the form with a copy of a push. `onSent(apnsID)` is called after it was sent. */
export async function editAndSend(seq, onSent) {
  try {
    new Composer(await draftOf(seq), onSent).open();
  } catch (error) {
    showError(error);
  }
}

class Composer {
  constructor(draft, onSent) {
    this.onSent = onSent;
    const named = new Set(HEADERS.map(([name]) => name));
    this.token = field("composer-token", draft.token);
    this.fields = HEADERS.map(([name, hint]) => ({ name, hint, input: field(`composer-${name}`, draft.headers[name] ?? "") }));
    this.fields[1].input.setAttribute("list", "composer-types");
    this.others = h("textarea", { id: "composer-others", rows: "2", spellcheck: "false", class: "mono", placeholder: "name: value, one a line" });
    this.others.value = Object.entries(draft.headers).filter(([name]) => !named.has(name)).map(([name, value]) => `${name}: ${value}`).join("\n");
    this.payload = h("textarea", { id: "composer-payload", rows: "12", spellcheck: "false", class: "mono", "aria-describedby": "composer-json" });
    this.payload.value = draft.payload;
    this.json = h("p", { id: "composer-json", class: "composer-problem", role: "status" });
    this.size = h("div", {});
    this.verdict = h("div", { class: "composer-verdict", role: "status" });
    this.send = button("Send", () => this.sendNow(), { class: "primary" });
    this.check = settled(() => this.checkNow(), 250);
  }

  open() {
    this.dialog = openDialog("Edit and send again", { isWide: true },
      h("div", { class: "dialog-body composer" },
        h("div", { class: "composer-fields" },
          line("composer-token", "Device token", this.token),
          this.fields.map(({ name, hint, input }) => line(input.id, name, input, hint)),
          h("datalist", { id: "composer-types" }, TYPES.map((type) => h("option", { value: type }))),
          line("composer-others", "Other headers", this.others, "authorization is a new provider token unless you set it")),
        h("div", { class: "composer-payload" }, h("label", { for: "composer-payload" }, "Payload"), this.payload, this.json, this.size)),
      this.verdict,
      h("p", { class: "dialog-buttons" }, button("Format the payload", () => this.format(), { class: "small" }), h("span", { class: "bar-space" }), button("Cancel", () => this.dialog.close()), this.send));
    this.dialog.addEventListener("input", () => this.check());
    // On a narrow screen the payload is below the fields.
    if (this.payload.getBoundingClientRect().top < innerHeight / 2) this.payload.focus();
    this.payload.setSelectionRange(0, 0);
    this.checkNow();
  }

  get draft() {
    const headers = Object.fromEntries(this.fields.map(({ name, input }) => [name, input.value]).filter(([, value]) => value !== ""));
    for (const text of this.others.value.split("\n")) {
      const colon = text.indexOf(":", 1);
      if (colon > 0) headers[text.slice(0, colon).trim()] = text.slice(colon + 1).trim();
    }
    return { token: this.token.value.trim(), headers, payload: this.payload.value };
  }

  /** Asks the server for its verdict, without sending. */
  async checkNow() {
    const request = (this.request = {});
    let verdict;
    try {
      verdict = await post("/send", { ...this.draft, dry_run: true });
    } catch (error) {
      if (this.request === request) this.showInvalid(error);
      return;
    }
    if (this.request !== request) return;
    const problem = verdict.payload_error;
    replace(this.json, problem && ["Not JSON: ", visible(problem), position(this.payload.value, problem)]);
    this.payload.setAttribute("aria-invalid", String(Boolean(problem)));
    replace(this.size, gauge(verdict.size));
    const failed = verdict.checks.find((one) => !one.ok);
    const isGood = isSuccess(verdict.status);
    replace(this.verdict, h("p", { class: `notice ${isGood ? "is-good" : "is-error"}` },
      h("strong", {}, `APNs would respond ${verdict.status} ${verdict.reason ?? ""}`.trim()), failed ? [": ", visible(failed.detail ?? CHECK_NAMES[failed.check] ?? failed.check)] : ".",
      isGood && problem ? " A device drops it, because the payload is not JSON." : ""));
    this.send.disabled = false;
  }

  showInvalid(error) {
    replace(this.verdict, h("p", { class: "notice is-error" }, visible([error.message, error.hint].filter(Boolean).join(" — "))));
    this.send.disabled = error instanceof ApiError && error.status === 400;
  }

  async sendNow() {
    this.send.disabled = true;
    try {
      const result = await post("/send", this.draft);
      if (result.apns_id) {
        this.dialog.close();
        this.onSent(result.apns_id, resultOf(result));
        return;
      }
      replace(this.verdict, h("p", { class: "notice" }, `Sent: ${resultOf(result)}`));
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
