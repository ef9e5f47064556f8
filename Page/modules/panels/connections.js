// All connections on one time line, and the frames of a connection.
import { get, hasServer, post } from "../api.js";
import { Frames } from "../connections/frames.js";
import { Tracks } from "../connections/tracks.js";
import { showError, showMessage } from "../copy.js";
import { button, h, oneAtATime, replace, throttled } from "../dom.js";
import { count } from "../format.js";
import { OUTCOMES, outcomeText } from "../outcomes.js";

export class ConnectionsPanel {
  constructor(actions) {
    this.actions = { ...actions, select: (id) => this.select(id),
      list: (id, from, until) => actions.search(`connection:${id} since:"${new Date(from).toISOString()}" until:"${new Date(until).toISOString()}"`) };
    this.tracks = new Tracks(this.actions);
    this.frames = new Frames(this.actions);
    this.summary = h("p", { class: "quiet" });
    this.notice = h("p", { class: "notice" }, "No connections yet.");
    this.element = h("section", { class: "panel is-wide", "aria-label": "Connections" },
      h("header", { class: "panel-head" }, h("h2", {}, "Connections"),
        hasServer() && h("div", { class: "panel-actions" },
          button("GOAWAY to all", () => this.send("/connections/goaway", "GOAWAY sent"), { class: "small" }),
          button("Close all", () => this.send("/connections/close", "Closed"), { class: "small" }))),
      this.summary, this.legend(), this.notice, this.tracks.element, this.frames.element);
    this.load = oneAtATime(() => this.read());
    this.refresh = throttled(this.load, 1000);
  }

  legend() {
    return h("ul", { class: "legend", "aria-label": "Legend" }, OUTCOMES.filter((name) => name !== "unknown").map((name) =>
      h("li", { class: `is-${name}` }, h("span", { class: "legend-box" }), outcomeText(name))),
    h("li", {}, h("span", { class: "legend-line is-accepted" }), "delivered"), h("li", {}, h("span", { class: "legend-line is-pending" }), "stored"), h("li", {}, h("span", { class: "legend-line is-rejected" }), "discarded"));
  }

  send(path, message) {
    post(path, { all: true }).then((result) => showMessage(`${message}: ${result.connections?.length ?? 0} connections`), showError).then(() => this.load());
  }

  async read() {
    try {
      const { items, open } = await get("/connections");
      this.connections = [...items].sort((a, b) => b.number - a.number);
      const times = items.flatMap((one) => (one.events ?? []).map((event) => Date.parse(event.at))).filter(Number.isFinite);
      const isEmpty = items.length === 0;
      this.notice.hidden = !isEmpty;
      this.tracks.element.hidden = isEmpty;
      replace(this.notice, "No connections yet.");
      replace(this.summary, isEmpty ? "" : `${count(open)} open, ${count(items.length - open)} closed, newest first. The last 200 closed connections are kept. A click on a connection shows its frames.`);
      if (isEmpty) return;
      const newest = await get("/pushes", { order: "desc", limit: 1, fields: "received_at,finished_at" });
      for (const push of newest.items) times.push(Date.parse(push.finished_at ?? push.received_at));
      const [from, until] = times.reduce(([low, high], time) => [Math.min(low, time), Math.max(high, time)], [Infinity, -Infinity]);
      const margin = Math.max(5, (until - from) * 0.01);
      this.tracks.show(this.connections, Math.floor(from - margin), Math.ceil(until + margin));
    } catch (error) {
      this.notice.hidden = false;
      replace(this.notice, error.message);
    }
  }

  select(id) {
    const chosen = id === this.tracks.selected ? null : id;
    this.tracks.select(chosen);
    this.frames.show(this.connections.find((one) => one.id === chosen) ?? null);
    if (chosen) this.frames.element.scrollIntoView({ block: "nearest" });
  }
}
