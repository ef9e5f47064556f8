// The timeline of a push's connection.
import { get } from "../api.js";
import { h, replace } from "../dom.js";
import { count } from "../format.js";
import { eventTable, LANE_FIELDS, lanes } from "../lanes.js";
import { ATTEMPT_FIELDS, waterfall } from "../waterfall.js";

const MAX_PUSHES = 600;

export function timelineTab(record, actions) {
  const container = h("div", { class: "stack" }, h("p", { class: "quiet" }, "Loading …"));
  draw(record, actions, container).catch((error) => replace(container, h("p", { class: "notice" }, error.message)));
  return container;
}

async function draw(record, actions, container) {
  const { id } = record.connection;
  const q = `connection:${id}`;
  const [series, before, after, connection] = await Promise.all([
    record.attempt > 1 || !record.accepted ? get("/pushes", { push_key: record.push_key, order: "asc", limit: MAX_PUSHES, fields: ATTEMPT_FIELDS }) : { items: [] },
    get("/pushes", { q, order: "desc", before: record.seq, limit: MAX_PUSHES / 2, fields: LANE_FIELDS }),
    get("/pushes", { q, order: "asc", after: record.seq, limit: MAX_PUSHES / 2, fields: LANE_FIELDS }),
    get(`/connections/${encodeURIComponent(id)}`).catch(() => null),
  ]);
  const pushes = [...before.items.reverse(), record, ...after.items];
  const known = connection ?? { id, state: "closed", client: record.connection.client, tls: record.connection.tls, pushes: pushes.length, events: [] };
  const width = Math.max(280, container.clientWidth - 4);
  replace(container, waterfall(seriesOf(record, series.items), { chosen: record.seq, open: actions.open, width }),
    h("h3", {}, `Connection ${id}`),
    h("div", { class: "scroll-x", tabindex: "0", role: "region", "aria-label": "Timeline" },
      lanes([known], pushes, { width, chosen: record.seq, open: actions.open })),
    h("p", { class: "quiet" }, extent(pushes.length, before.next !== null || after.next !== null, connection)),
    h("h3", {}, "Connection events"),
    connection ? eventTable(connection) : h("p", { class: "quiet" }, "Not available: only the last 200 closed connections are stored."));
  container.querySelector(".lane-bar[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
}

/** How many of the pushes of a connection are drawn. */
function extent(number, areMore, connection) {
  if (number === 1 && !areMore) return "This is the only push on its connection.";
  const of = !areMore ? "" : connection ? ` of ${count(connection.pushes)}` : " of more";
  return `${of ? "The nearest " : ""}${count(number)}${of} pushes of this connection. Click a bar to open a push.`;
}

/** The attempts of the push, of all with its key: a key recurs when a push is repeated much later. */
export function seriesOf(record, items) {
  const here = items.findIndex((item) => item.seq === record.seq);
  if (here < 0) return [];
  let first = here;
  while (first > 0 && items[first].attempt > 1) first -= 1;
  let end = here + 1;
  while (end < items.length && items[end].attempt > 1) end += 1;
  return items.slice(first, end);
}
