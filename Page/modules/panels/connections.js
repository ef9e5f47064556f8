// All connections as timelines, which show failures that have a common cause.
import { get, post } from "../api.js";
import { showError, showMessage } from "../copy.js";
import { button, h, replace, throttled } from "../dom.js";
import { LANE_FIELDS, lanes } from "../lanes.js";

const MAX_LANES = 40;
const MAX_PUSHES = 1000;

export class ConnectionsPanel {
  constructor(actions) {
    this.actions = actions;
    this.timelines = h("div", {});
    this.element = h("section", { class: "panel", "aria-label": "Connections" },
      h("header", { class: "panel-head" }, h("h2", {}, "Connections"),
        h("div", { class: "panel-actions" },
          button("GOAWAY to all", () => this.send("/connections/goaway", "GOAWAY sent"), { class: "small" }),
          button("Close all", () => this.send("/connections/close", "Closed"), { class: "small" }))),
      h("p", { class: "quiet" }, "Newest first. Bars are pushes, marks are other events; idle times are collapsed. Click a bar to open a push."),
      this.timelines);
    this.refresh = throttled(() => this.load(), 1000);
  }

  send(path, message) {
    post(path, { all: true }).then((result) => showMessage(`${message}: ${result.connections?.length ?? 0} connections`), showError).then(() => this.load());
  }

  async load() {
    try {
      const [connections, pushes] = await Promise.all([
        get("/connections"), get("/pushes", { order: "desc", limit: MAX_PUSHES, fields: LANE_FIELDS }),
      ]);
      const newest = [...connections.items].sort((a, b) => b.number - a.number);
      const some = newest.slice(0, MAX_LANES);
      const ids = new Set(some.map((one) => one.id));
      if (!some.length) return replace(this.timelines, h("p", { class: "notice" }, "No connections yet."));
      const scroll = this.timelines.firstChild?.scrollLeft ?? 0;
      replace(this.timelines,
        h("div", { class: "scroll-x", tabindex: "0", role: "region", "aria-label": "Timelines" },
          lanes(some, pushes.items.filter((push) => ids.has(push.connection?.id)), { width: this.timelines.clientWidth - 4, open: this.actions.open })),
        newest.length > MAX_LANES && h("p", { class: "quiet" }, `${newest.length - MAX_LANES} older ones are not shown.`));
      this.timelines.firstChild.scrollLeft = scroll;
    } catch (error) {
      replace(this.timelines, h("p", { class: "notice" }, error.message));
    }
  }
}
