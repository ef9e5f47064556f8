// The timeline of a push's connection.
import { get } from "../api.js";
import { h, replace } from "../dom.js";
import { eventTable, LANE_FIELDS, lanes } from "../lanes.js";

const MOST = 300;

export function timelineTab(record, acts) {
  const place = h("div", { class: "stack" }, h("p", { class: "quiet" }, "Loading …"));
  draw(record, acts, place).catch((error) => replace(place, h("p", { class: "notice" }, error.message)));
  return place;
}

async function draw(record, acts, place) {
  const { id } = record.connection;
  const q = `connection:${id}`;
  const [before, after, connection] = await Promise.all([
    get("/pushes", { q, order: "desc", before: record.seq + 1, limit: MOST / 2, fields: LANE_FIELDS }),
    get("/pushes", { q, order: "asc", after: record.seq, limit: MOST / 2, fields: LANE_FIELDS }),
    get(`/connections/${encodeURIComponent(id)}`).catch(() => null),
  ]);
  const pushes = [...before.items, ...after.items];
  const known = connection ?? { id, state: "closed", client: record.connection.client, tls: record.connection.tls, pushes: pushes.length, events: [] };
  const width = Math.max(280, place.clientWidth - 4);
  replace(place,
    h("div", { class: "scroll-x", tabindex: "0", role: "region", "aria-label": "Timeline" },
      lanes([known], pushes, { width, chosen: record.seq, open: acts.open })),
    h("p", { class: "quiet" }, pushes.length === 1 ? "This is the only push on its connection." : `${pushes.length} pushes of this connection. Click a bar to open a push.`),
    h("h3", {}, "Connection events"),
    connection ? eventTable(connection) : h("p", { class: "quiet" }, "Not available: only the last 200 closed connections are stored."));
}
