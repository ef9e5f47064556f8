// All connections as timelines, which show failures that have a common cause.
import { get, post } from "../api.js";
import { sayError, say } from "../copy.js";
import { button, h, replace, throttled } from "../dom.js";
import { LANE_FIELDS, lanes } from "../lanes.js";

const MOST_LANES = 40;
const MOST_PUSHES = 1000;

export class ConnectionsPanel {
  constructor(acts) {
    this.acts = acts;
    this.place = h("div", {});
    this.element = h("section", { class: "panel", "aria-label": "Connections" },
      h("header", { class: "panel-head" }, h("h2", {}, "Connections"),
        h("div", { class: "panel-actions" },
          button("GOAWAY to all", () => this.act("/connections/goaway", "GOAWAY sent"), { class: "small" }),
          button("Close all", () => this.act("/connections/close", "Closed"), { class: "small" }))),
      h("p", { class: "quiet" }, "Newest first. Bars are pushes, marks are other events; idle times are collapsed. Click a bar to open a push."),
      this.place);
    this.refresh = throttled(() => this.load(), 1000);
  }

  act(path, words) {
    post(path, { all: true }).then((told) => say(`${words}: ${told.connections?.length ?? 0} connections`), sayError).then(() => this.load());
  }

  async load() {
    try {
      const [told, pushes] = await Promise.all([
        get("/connections"), get("/pushes", { order: "desc", limit: MOST_PUSHES, fields: LANE_FIELDS }),
      ]);
      const newest = [...told.items].sort((a, b) => b.number - a.number);
      const some = newest.slice(0, MOST_LANES);
      const ids = new Set(some.map((one) => one.id));
      if (!some.length) return replace(this.place, h("p", { class: "notice" }, "No connections yet."));
      const scroll = this.place.firstChild?.scrollLeft ?? 0;
      replace(this.place,
        h("div", { class: "scroll-x", tabindex: "0", role: "region", "aria-label": "Timelines" },
          lanes(some, pushes.items.filter((push) => ids.has(push.connection?.id)), { width: this.place.clientWidth - 4, open: this.acts.open })),
        newest.length > MOST_LANES && h("p", { class: "quiet" }, `${newest.length - MOST_LANES} older ones are not shown.`));
      this.place.firstChild.scrollLeft = scroll;
    } catch (error) {
      replace(this.place, h("p", { class: "notice" }, error.message));
    }
  }
}
