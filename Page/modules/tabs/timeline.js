// The timeline of a push's connection.
import { get } from "../api.js";
import { h, replace } from "../dom.js";
import { eventTable, LANE_FIELDS, lanes } from "../lanes.js";

const MAX_PUSHES = 300;

export function timelineTab(record, actions) {
  const container = h("div", { class: "stack" }, h("p", { class: "quiet" }, "Loading …"));
  draw(record, actions, container).catch((error) => replace(container, h("p", { class: "notice" }, error.message)));
  return container;
}

async function draw(record, actions, container) {
  const { id } = record.connection;
  const q = `connection:${id}`;
  const [before, after, connection] = await Promise.all([
    get("/pushes", { q, order: "desc", before: record.seq, limit: MAX_PUSHES / 2, fields: LANE_FIELDS }),
    get("/pushes", { q, order: "asc", after: record.seq, limit: MAX_PUSHES / 2, fields: LANE_FIELDS }),
    get(`/connections/${encodeURIComponent(id)}`).catch(() => null),
  ]);
  const pushes = [...before.items.reverse(), record, ...after.items];
  const known = connection ?? { id, state: "closed", client: record.connection.client, tls: record.connection.tls, pushes: pushes.length, events: [] };
  const width = Math.max(280, container.clientWidth - 4);
  replace(container,
    h("div", { class: "scroll-x", tabindex: "0", role: "region", "aria-label": "Timeline" },
      lanes([known], pushes, { width, chosen: record.seq, open: actions.open })),
    h("p", { class: "quiet" }, pushes.length === 1 ? "This is the only push on its connection." : `${pushes.length} pushes of this connection. Click a bar to open a push.`),
    h("h3", {}, "Connection events"),
    connection ? eventTable(connection) : h("p", { class: "quiet" }, "Not available: only the last 200 closed connections are stored."));
}
