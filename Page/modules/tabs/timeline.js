// The timeline of a push: its attempts, and its connection.
import { get } from "../api.js";
import { eventName } from "../connections/marks.js";
import { Tracks } from "../connections/tracks.js";
import { serverNow } from "../clock.js";
import { h, replace, table } from "../dom.js";
import { count, counted, dayTime } from "../format.js";
import { visible } from "../visible.js";
import { ATTEMPT_FIELDS, waterfall } from "../waterfall.js";

const MAX_ATTEMPTS = 600;
const AROUND = 20; // pushes before the push, and after it, that are shown first
const TIMES = "received_at,finished_at";

export function timelineTab(record, actions) {
  const container = h("div", { class: "stack" }, h("p", { class: "quiet" }, "Loading …"));
  draw(record, actions, container).catch((error) => replace(container, h("p", { class: "notice" }, error.message)));
  return container;
}

async function draw(record, actions, container) {
  const { id } = record.connection;
  const of = (query) => get("/pushes", { connection: id, fields: TIMES, ...query });
  const [series, before, after, oldest, newest, connection] = await Promise.all([
    record.attempt > 1 || !record.accepted ? get("/pushes", { push_key: record.push_key, order: "asc", limit: MAX_ATTEMPTS, fields: ATTEMPT_FIELDS }) : { items: [] },
    of({ order: "desc", before: record.seq, limit: AROUND }), of({ order: "asc", after: record.seq, limit: AROUND }), of({ order: "asc", limit: 1 }), of({ order: "desc", limit: 1 }),
    get(`/connections/${encodeURIComponent(id)}`).catch(() => null),
  ]);
  const near = extent([...before.items, record, ...after.items]);
  const all = extent([record, ...before.items, ...after.items, ...oldest.items, ...newest.items, ...(connection?.events ?? []).map((event) => ({ received_at: event.at, finished_at: event.at }))]);
  const tracks = new Tracks({ open: actions.open, search: actions.search }, { seq: record.seq, at: Date.parse(record.received_at), from: near[0], until: near[1] });
  replace(container, waterfall(seriesOf(record, series.items), { chosen: record.seq, open: actions.open, width: Math.max(280, container.clientWidth - 4) }),
    h("h3", {}, `Connection ${id}`), tracks.element, h("p", { class: "quiet" }, part(before.items.length + 1 + after.items.length, before.next !== null || after.next !== null, connection?.pushes ?? newest.matched)),
    h("h3", {}, "Connection events"), connection ? eventTable(connection) : h("p", { class: "quiet" }, "Not available: only the last 200 closed connections are stored."));
  tracks.show([connection ?? { id, state: "closed", client: record.connection.client, tls: record.connection.tls, pushes: newest.matched ?? 0, events: [] }], ...all);
  tracks.showChosen();
}

/** Which pushes of the connection are shown first. */
function part(number, areMore, total) {
  const which = areMore ? `The nearest ${count(number)} of ${total === null ? "more" : count(total)} pushes of this connection; All shows the others.` : number === 1 ? "This is the only push on its connection." : `All ${count(number)} pushes of this connection.`;
  return `${which} Drag on the axis to zoom; a click on a bar opens its push.`;
}

/** The time that pushes take, in milliseconds since 1970, with a margin. */
function extent(pushes) {
  const starts = pushes.map((push) => Date.parse(push.received_at));
  const ends = pushes.map((push) => (push.finished_at ? Date.parse(push.finished_at) : serverNow()));
  const [from, until] = [Math.min(...starts), Math.max(...starts, ...ends)];
  const margin = Math.max(5, (until - from) * 0.02);
  return [Math.floor(from - margin), Math.ceil(until + margin)];
}

function eventTable(connection) {
  return [table("Connection events", ["Time", "Event", "Details"], (connection.events ?? []).map((event) => [h("td", { class: "mono" }, dayTime(event.at)),
    h("span", { class: `event-name event-${event.event}` }, eventName(event.event)), h("td", { class: "wrap" }, visible(event.detail ?? ""))])),
  connection.events_dropped > 0 && h("p", { class: "quiet" }, `Not stored: ${counted(connection.events_dropped, "event")} between the first and the last`)];
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
