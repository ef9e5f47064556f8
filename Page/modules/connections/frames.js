// The frames of a connection in order, in both directions: derived from the recorded pushes and the recorded events.
import { get } from "../api.js";
import { button, h, replace, table } from "../dom.js";
import { counted, dayTime } from "../format.js";
import { quoted } from "../terms.js";
import { visible } from "../visible.js";
import { compareConnections } from "./compare.js";
import { eventName } from "./marks.js";

const PAGE = 60; // pushes
const FIELDS = "seq,received_at,finished_at,outcome,connection.stream,request.method,request.size,served,delivery,fault";
// What an event is on the connection: the frame, or null for something that is not a frame.
const EVENT_FRAMES = { settings: "SETTINGS", goaway: "GOAWAY", reset: "RST_STREAM" };

/** Returns the frames of a push: what its record implies. */
function framesOf(push) {
  const stream = push.connection?.stream;
  const bytes = push.request?.size?.bytes ?? 0;
  const served = push.served ?? {};
  const received = { at: push.received_at, fromClient: true, stream, seq: push.seq };
  const frames = [{ ...received, frame: "HEADERS", detail: `${push.request?.method ?? "POST"}${bytes ? "" : ", END_STREAM"}` }];
  if (bytes) frames.push({ ...received, frame: "DATA", detail: `${counted(bytes, "byte")}, END_STREAM` });
  const sent = { at: push.finished_at ?? push.received_at, fromClient: false, stream, seq: push.seq };
  const rule = push.fault?.rule ? `, by the rule ${push.fault.rule}` : "";
  if (served.status) {
    frames.push({ ...sent, frame: "HEADERS", detail: `:status ${served.status}${served.reason ? "" : ", END_STREAM"}${rule}` });
    if (served.reason) frames.push({ ...sent, frame: "DATA", detail: `{"reason":"${served.reason}"}, END_STREAM` });
  }
  if (served.reset) frames.push({ ...sent, frame: "RST_STREAM", detail: `${served.reset}${rule}` });
  if (push.outcome === "pending") frames.push({ ...sent, frame: null, text: "no response yet", detail: rule.slice(2) });
  return frames;
}

function frameOfEvent(event) {
  const frame = EVENT_FRAMES[event.event] ?? null;
  return { at: event.at, fromClient: false, isRecorded: true, frame, text: eventName(event.event), detail: event.detail ?? "", isEvent: frame === null };
}

export class Frames {
  constructor(actions) {
    this.actions = actions;
    this.title = h("h3", { tabindex: "-1" });
    this.body = h("div", {});
    this.element = h("section", { class: "card frames", hidden: true, "aria-label": "Frames" });
  }

  async show(connection) {
    this.connection = connection;
    this.element.hidden = connection === null;
    if (!connection) return;
    this.before = null;
    replace(this.title, `Frames of ${connection.id}`);
    replace(this.element, h("header", { class: "panel-head" }, this.title, h("div", { class: "panel-actions" },
      this.comparison(connection), button("Show its pushes", () => this.actions.search(`connection:${quoted(connection.id)}`), { class: "small" }), button("Close", () => this.actions.select(null), { class: "small" }))),
      h("p", { class: "quiet" }, "Recorded: TCP, TLS, SETTINGS, GOAWAY, resets, faults. Derived from the records of pushes: HEADERS, DATA, RST_STREAM; a request has the time at which it was complete. Not recorded: SETTINGS of the client, acknowledgements, PING, WINDOW_UPDATE, and how DATA was divided into frames."),
      this.body);
    await this.load();
  }

  /** A field to select another connection, with which this one is compared. */
  comparison(connection) {
    const others = this.actions.others(connection);
    if (!others.length) return null;
    const field = h("select", { "aria-label": `Compare ${connection.id} with`, class: "is-small", on: { change: () => {
      compareConnections([connection, others.find((one) => one.id === field.value)]);
      field.value = "";
    } } }, h("option", { value: "" }, "Compare with …"), others.map((one) => h("option", { value: one.id }, `${one.id} · ${counted(one.pushes, "push", "pushes")}`)));
    return field;
  }

  async load() {
    const { connection } = this;
    try {
      const page = await get("/pushes", { connection: connection.id, order: "desc", limit: PAGE, fields: FIELDS, ...(this.before ? { before: this.before } : {}) });
      if (connection !== this.connection) return;
      this.draw(page);
    } catch (error) {
      replace(this.body, h("p", { class: "notice is-error" }, error.message));
    }
  }

  draw(page) {
    const pushes = page.items.reverse();
    const isOldest = page.next === null;
    const [from, until] = [pushes[0]?.received_at ?? "", this.before ? pushes.at(-1)?.finished_at ?? "" : "~"];
    const events = (this.connection.events ?? []).filter((event) => (isOldest || event.at >= from) && event.at <= until);
    const rows = [...events.map(frameOfEvent), ...pushes.flatMap(framesOf)].map((row, index) => ({ ...row, index })).sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : order(a, b)));
    replace(this.body, rows.length ? table("Sequence of frames", ["Time", "Client", "", "Server", "Stream", "Details", "Source"], rows.map((row) => this.row(row)), { kind: "sequence" }) : h("p", { class: "quiet" }, "No frames."),
    h("div", { class: "panel-actions" }, this.before && button("Newest", () => this.page(null), { class: "small" }),
      !isOldest && button("Older", () => this.page(pushes[0].seq), { class: "small" }),
      this.connection.events_dropped > 0 && h("span", { class: "quiet" }, `Not stored: ${counted(this.connection.events_dropped, "event")} between the first and the last.`)));
  }

  page(before) {
    this.before = before;
    this.load();
  }

  row(row) {
    const name = h("span", { class: `frame-name frame-${(row.frame ?? "event").toLowerCase()}` }, row.frame ?? row.text);
    return h("tr", { class: row.isEvent ? "is-event" : "" }, h("td", { class: "mono" }, dayTime(row.at)),
      h("td", { class: "frame-client" }, row.fromClient ? name : ""), h("td", { class: "frame-arrow", "aria-label": row.isEvent || !row.frame ? null : row.fromClient ? "to the server" : "to the client" }, row.isEvent || !row.frame ? "" : row.fromClient ? "→" : "←"),
      h("td", {}, row.fromClient ? "" : name), h("td", {}, row.stream ? button(String(row.stream), () => this.actions.open(row.seq), { class: "small plain-button", "aria-label": `Stream ${row.stream}: open push ${row.seq}` }) : ""),
      h("td", { class: "wrap" }, visible(row.detail, { limit: 200 })), h("td", { class: "quiet" }, row.isRecorded ? "recorded" : "derived"));
  }
}

/** Events come before the pushes of the same millisecond, except the end of the connection. */
function order(a, b) {
  const rank = (row) => (row.text === "closed" ? 2 : row.isRecorded ? 0 : 1);
  return rank(a) - rank(b) || a.index - b.index;
}
