// All connections on one time line, and the frames of a connection.
import { get, hasServer, post } from "../api.js";
import { Frames } from "../connections/frames.js";
import { Tracks } from "../connections/tracks.js";
import { FIELDS } from "../complete.js";
import { showError, showMessage } from "../copy.js";
import { confirmed } from "../dialog.js";
import { button, h, oneAtATime, replace, settled, throttled } from "../dom.js";
import { count, counted } from "../format.js";
import { eventName } from "../connections/marks.js";
import { OUTCOMES, outcomeText } from "../outcomes.js";
import { shown } from "../route.js";
import { conditions, filterOf, shortHint } from "../terms.js";
import { visible } from "../visible.js";

const MAX_FOUND = 1000; // pushes that match, whose connections are shown
// The orders of connections: name, and comparison.
const ORDERS = {
  newest: ["Newest first", (a, b) => b.number - a.number], oldest: ["Oldest first", (a, b) => a.number - b.number],
  pushes: ["Most pushes first", (a, b) => b.pushes - a.pushes || b.number - a.number], open: ["Open first", (a, b) => (a.state === "open" ? 0 : 1) - (b.state === "open" ? 0 : 1) || b.number - a.number],
};

export class ConnectionsPanel {
  constructor(actions) {
    this.all = null; // the connections, once they are loaded
    this.actions = { ...actions, select: (id) => this.select(id), others: (connection) => this.connections.filter((one) => one.id !== connection.id) };
    this.tracks = new Tracks(this.actions);
    this.frames = new Frames(this.actions);
    this.field = h("input", { id: "connection-search", type: "search", placeholder: "status:503, id, client, state or event", autocomplete: "off", spellcheck: "false", on: { input: () => this.find() } });
    this.order = h("select", { id: "connection-order", on: { change: () => this.draw() } }, Object.entries(ORDERS).map(([value, [name]]) => h("option", { value }, name)));
    this.onlySearch = h("input", { type: "checkbox", on: { change: () => this.find() } });
    this.searchLine = h("label", { class: "choice-line", hidden: true }, this.onlySearch, h("span", {}));
    this.summary = h("p", { class: "quiet" });
    this.notice = h("p", { class: "notice" }, "Loading …");
    this.tracks.element.hidden = true; // until the connections are loaded
    this.element = h("section", { class: "panel is-wide", "aria-label": "Connections" },
      h("header", { class: "panel-head" }, h("h2", {}, "Connections"),
        hasServer() && h("div", { class: "panel-actions" },
          button("GOAWAY to all", () => this.send("/connections/goaway", "GOAWAY sent", "Send GOAWAY to"), { class: "small" }),
          button("Close all", () => this.send("/connections/close", "Closed", "Close"), { class: "small" }))),
      h("div", { class: "field-row" }, h("label", { for: "connection-search" }, "Search"), this.field, h("label", { for: "connection-order" }, "Order"), this.order, this.searchLine),
      this.summary, this.legend(), this.notice, this.tracks.element, this.frames.element);
    this.load = oneAtATime(() => this.read());
    this.refresh = throttled(this.load, 1000);
    this.search = settled(() => this.readSearch().then(() => this.draw()), 250);
  }

  legend() {
    return h("ul", { class: "legend", "aria-label": "Legend" }, OUTCOMES.filter((name) => name !== "unknown").map((name) =>
      h("li", { class: `is-${name}` }, h("span", { class: "legend-box" }), outcomeText(name))),
    h("li", {}, h("span", { class: "legend-line is-accepted" }), "delivered"), h("li", {}, h("span", { class: "legend-line is-pending" }), "stored"), h("li", {}, h("span", { class: "legend-line is-rejected" }), "discarded"));
  }

  async send(path, message, act) {
    const { open } = await get("/connections").catch(() => ({ open: 0 }));
    if (!open) return showMessage("No connections are open");
    const connections = counted(open, "open connection");
    if (!await confirmed({ title: act === "Close" ? "Close all" : "GOAWAY to all", question: `${act} ${connections}? This cannot be undone.`, label: `${act} ${connections}` })) return null;
    return post(path, { all: true }).then((result) => showMessage(`${message}: ${counted(result.connections?.length ?? 0, "connection")}`), showError).then(() => this.load());
  }

  async read() {
    try {
      const { items } = await get("/connections");
      this.all = items;
      await this.readSearch();
      if (!items.length) return this.draw();
      const times = items.flatMap((one) => (one.events ?? []).map((event) => Date.parse(event.at))).filter(Number.isFinite);
      const newest = await get("/pushes", { order: "desc", limit: 1, fields: "received_at,finished_at" });
      for (const push of newest.items) times.push(Date.parse(push.finished_at ?? push.received_at));
      const [from, until] = times.reduce(([low, high], time) => [Math.min(low, time), Math.max(high, time)], [Infinity, -Infinity]);
      const margin = Math.max(5, (until - from) * 0.01);
      this.limits = [Math.floor(from - margin), Math.ceil(until + margin), until];
      this.draw();
    } catch (error) {
      this.notice.hidden = false;
      this.notice.classList.add("is-error");
      replace(this.notice, error.message);
    }
  }

  /** Shows the connections that match the field: words at once, conditions when their pushes are found. */
  find() {
    this.draw();
    this.search();
  }

  /** The conditions on pushes in the field, and the words that a connection itself must have, or must not have. */
  get parts() {
    const all = conditions(this.field.value).map((one) => ({ ...one, word: (one.field === null ? one.value : one.text.replace(/^[!-]/, "")).toLowerCase() }));
    const isKnown = (field) => FIELDS.some(([name]) => name === field || (/[./]$/.test(name) && field.startsWith(name)));
    // The client of a connection has a colon too, as in 127.0.0.1:49278 or localhost:49278.
    const isCondition = ({ field, word }) => field !== null && /^[#a-z]/.test(word) && (isKnown(field) || !this.all?.some((one) => textOf(one).includes(word)));
    return { q: all.filter(isCondition).map((one) => one.text).join(" "), words: all.filter((one) => !isCondition(one)) };
  }

  /** Reads which connections have pushes that match the conditions in the field, and the search of the list. */
  async readSearch() {
    this.searchLine.hidden = !shown.q;
    replace(this.searchLine.lastChild, "Only those of the search ", h("code", {}, visible(shown.q, { limit: 80 })));
    const q = [this.onlySearch.checked && shown.q, this.parts.q].filter(Boolean).join(" ");
    const request = (this.request = {});
    this.problem = null;
    this.cut = "";
    if (!q) return void (this.ofSearch = null);
    try {
      const page = await get("/pushes", { ...filterOf(q), order: "desc", limit: MAX_FOUND, fields: "connection.id" });
      if (this.request !== request) return;
      this.ofSearch = new Set(page.items.map((item) => item.connection.id));
      if (page.next !== null) this.cut = ` Found by the newest ${count(page.items.length)} pushes that match.`;
    } catch (error) {
      if (this.request === request) this.problem = [error.message, shortHint(error)].filter(Boolean).join(" — ");
    }
  }

  /** Shows the connections that the fields select. */
  draw() {
    if (!this.all) return;
    const { words } = this.parts;
    this.connections = this.all.filter((one) => (!this.ofSearch || this.ofSearch.has(one.id)) && words.every(({ word, isNegated }) => textOf(one).includes(word) !== isNegated)).sort(ORDERS[this.order.value][1]);
    const isNone = this.connections.length === 0;
    this.notice.hidden = !isNone && !this.problem;
    this.notice.classList.toggle("is-error", Boolean(this.problem));
    this.tracks.element.hidden = isNone;
    replace(this.notice, visible(this.problem ?? (this.all.length ? "No connection matches." : "No connections yet."), { limit: 300 }));
    const open = this.all.filter((one) => one.state === "open").length;
    replace(this.summary, this.all.length > 0 && `${count(open)} open, ${count(this.all.length - open)} closed${isNone || this.connections.length === this.all.length ? "" : `; ${count(this.connections.length)} match`}. The last 200 closed connections are kept. A click on a connection shows its frames.${this.cut ?? ""}`);
    if (this.limits) this.tracks.show(this.connections, ...this.limits);
  }

  select(id) {
    const chosen = id === this.tracks.selected ? null : id;
    this.tracks.select(chosen);
    this.frames.show(this.connections.find((one) => one.id === chosen) ?? null);
    if (chosen) this.frames.element.scrollIntoView({ block: "nearest" });
  }
}

/** What words of the search are looked for in. */
function textOf(one) {
  return [one.id, one.state, one.client, one.tls, ...(one.events ?? []).map((event) => `${eventName(event.event)} ${event.detail ?? ""}`)].join(" ").toLowerCase();
}
