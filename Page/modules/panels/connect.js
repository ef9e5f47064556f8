// Instructions to connect a client, with this server's values, and a form for a test push.
import { get, post } from "../api.js";
import { copy } from "../copy.js";
import { button, exclusive, h, replace } from "../dom.js";
import { LIBRARIES } from "../libraries.js";
import { visible } from "../visible.js";
import { SAMPLES } from "./samples.js";

const TOPIC = "com.example.app";
const DEVICE = "ab12".repeat(16);

export class ConnectPanel {
  constructor() {
    this.library = LIBRARIES[0][0];
    this.settings = h("div", { class: "card" });
    this.lines = h("pre", { class: "code", tabindex: "0", "aria-label": "Code example" });
    this.choices = h("div", { class: "chips", role: "group", "aria-label": "Library" });
    this.element = h("section", { class: "panel connect", "aria-label": "Connect a client" },
      h("header", { class: "panel-head" }, h("h2", {}, "Connect a client")),
      h("p", {}, "Point any APNs client library at this server: set the host and port, the CA and the provider key. Its pushes then appear here."),
      this.settings,
      h("div", { class: "card" }, h("h3", {}, "Client library"), this.choices, this.lines,
        h("p", {}, button("Copy code", () => copy(this.lines.textContent, "the code"), { class: "small" }))),
      this.testForm());
  }

  async load() {
    try {
      const [status, keys] = await Promise.all([get("/status"), get("/keys")]);
      this.show(status, keys.items[0]);
    } catch (error) {
      replace(this.settings, h("p", { class: "notice" }, error.message));
    }
  }

  show(status, key) {
    const apns = status.addresses.apns[0];
    const folder = status.ca.path.replace(/[^/]*$/, "");
    const host = /^(127\.|0\.0\.0\.0|::|localhost)/.test(apns.host) ? "localhost" : apns.host;
    const keyID = key?.key_id ?? "MOCKKEY001";
    this.values = {
      host, port: apns.port, ca: status.ca.path, key: `${folder}AuthKey_${keyID}.p8`, keyID, teamID: key?.team_id ?? "MOCKTEAM01",
      topic: TOPIC, token: DEVICE,
    };
    const { port, ca, key: keyPath, teamID } = this.values;
    replace(this.settings, h("dl", { class: "facts settings" },
      [["Host and port", `${host}:${port}`], ["CA to trust", ca], ["Provider key", keyPath], ["Key id", keyID], ["Team id", teamID]].map(([name, value]) => [
        h("dt", {}, name), h("dd", {}, h("code", { class: "wrap" }, visible(String(value))),
          button("Copy", () => copy(String(value), name.toLowerCase()), { class: "small plain-button", "aria-label": `Copy ${name}` }))])),
      h("p", { class: "quiet" }, "The CA is also at ", h("a", { href: "/ca.pem" }, "/ca.pem"), ". The key is trusted for all topics."));
    this.drawLibraries();
  }

  drawLibraries() {
    replace(this.choices, LIBRARIES.map(([name]) => button(name, () => {
      this.library = name;
      this.drawLibraries();
      this.choices.querySelector("[aria-pressed=true]")?.focus();
    }, { class: "choice", "aria-pressed": String(name === this.library) })));
    const lines = LIBRARIES.find(([name]) => name === this.library)[1];
    replace(this.lines, lines(this.values));
  }

  testForm() {
    const token = h("input", { id: "test-token", class: "mono", spellcheck: "false", autocomplete: "off" });
    token.value = DEVICE;
    const topic = h("input", { id: "test-topic", class: "mono", spellcheck: "false", autocomplete: "off" });
    topic.value = TOPIC;
    const payload = h("textarea", { id: "test-payload", class: "mono", rows: "7", spellcheck: "false" });
    const kind = h("select", { id: "test-kind" }, SAMPLES.map((sample, index) => h("option", { value: index }, sample.name)));
    const result = h("p", { role: "status", class: "test-result" });
    const fill = () => { payload.value = JSON.stringify(SAMPLES[kind.value].payload(), null, 2); };
    kind.addEventListener("change", fill);
    fill();
    const send = exclusive(async () => {
      replace(result, "Sending …");
      try {
        const response = await post("/send", {
          token: token.value.trim(), headers: SAMPLES[kind.value].headers(topic.value.trim()), payload: JSON.parse(payload.value),
        });
        replace(result, h("span", { class: response.status === 200 ? "yes" : "no" }, visible(`${response.status ?? response.outcome ?? ""} ${response.reason ?? response.message ?? ""}`.trim())));
      } catch (error) {
        replace(result, h("span", { class: "no" }, error.message, error.hint ? ` — ${error.hint}` : ""));
      }
    });
    const field = (label, input) => h("div", { class: "field" }, h("label", { for: input.id }, label), input);
    return h("form", { class: "card", id: "test-push", on: { submit: (event) => { event.preventDefault(); send(); } } },
      h("h3", {}, "Send a test push"), h("p", { class: "quiet" }, "Sent over TLS and HTTP/2 with a provider token, as by a provider. Active faults apply."),
      h("div", { class: "fields" }, field("Kind", kind), field("Device token", token), field("Bundle id", topic)), field("Payload", payload),
      h("div", { class: "field-row" }, h("button", { type: "submit", class: "primary" }, "Send a test push"), result));
  }
}
