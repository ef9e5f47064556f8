// The connection of one push: what happened on it, before and after.
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
    h("div", { class: "scroll-x", tabindex: "0", role: "region", "aria-label": "Time line" },
      lanes([known], pushes, { width, chosen: record.seq, open: acts.open })),
    h("p", { class: "quiet" }, pushes.length === 1 ? "This push was the only one on its connection." : `${pushes.length} pushes of this connection are drawn. A click on a bar opens the push.`),
    h("h3", {}, "What happened on the connection"),
    connection ? eventTable(connection) : h("p", { class: "quiet" }, "It ended too long ago: of closed connections the last 200 are known."));
}
