// One row of the time line: the events of a connection, and its pushes in the visible time as bars or, if there are many,
// as columns of counts.
import { get } from "../api.js";
import { span } from "../charts/scale.js";
import { stack } from "../charts/stack.js";
import { serverNow } from "../clock.js";
import { h, svg } from "../dom.js";
import { dayTime, pushes as pushCount } from "../format.js";
import { OUTCOMES } from "../outcomes.js";
import { responseText } from "../summary.js";
import { arrange } from "./bars.js";
import { marks } from "./marks.js";

export const ROW_HEIGHT = 84;
const BAR_STEP = 21;
const BARS_HEIGHT = 50;
const COLUMNS_HEIGHT = 50;
/** More pushes than this are shown as columns. */
const MAX_BARS = 120;
// The pushes before the visible time of which some may still run then.
const MAX_CONCURRENT = 40;
const FIELDS = "seq,received_at,finished_at,outcome,delivery,connection.stream,served,fault.rule";

/** Loads what the row of a connection shows: `{pushes}` or `{timeline}`, and `matched`; `isRemoved` if the inbox has none of its pushes any more. */
export async function loadTrack(connection, { from, until, isAll }, width) {
  const query = { connection: connection.id, since: new Date(from).toISOString(), until: new Date(until).toISOString() };
  const [page, before] = await Promise.all([
    get("/pushes", { ...query, order: "asc", limit: MAX_BARS, fields: FIELDS }),
    // Pushes that began before and were not finished then.
    isAll ? { items: [] } : get("/pushes", { connection: connection.id, until: query.since, order: "desc", limit: MAX_CONCURRENT, fields: FIELDS }),
  ]);
  if (page.matched !== null && page.matched <= MAX_BARS) {
    const running = before.items.filter((push) => push.outcome === "pending" || Date.parse(push.finished_at) > from).reverse();
    const pushes = [...running, ...page.items.filter((push) => running.every((one) => one.seq !== push.seq))];
    const isRemoved = !pushes.length && connection.pushes > 0 && !(await get("/pushes", { connection: connection.id, limit: 1, fields: "seq" })).items.length;
    return { matched: page.matched, pushes, isRemoved };
  }
  const stats = await get("/stats", { ...query, buckets: Math.min(300, Math.max(20, Math.floor(width / 6))) });
  return { matched: stats.matched, timeline: stats.timeline };
}

/**
 * The content of the track; `data` is null while it is loaded. `actions`: `open(seq)`, `zoom(from, until)`, `list(from, until)`;
 * `chosen` is the push that is marked: its `seq`, and its time `at`.
 */
export function track(connection, data, window, width, { chosen = null, ...actions }) {
  const at = (time) => window.at(time, width);
  const parts = [marks(connection.events ?? [], window, width)];
  if (chosen && chosen.at >= window.from && chosen.at <= window.until) parts.push(h("span", { class: "track-chosen", style: { left: `${at(chosen.at)}px` } }));
  if (data?.error) parts.push(h("p", { class: "track-note" }, data.error));
  else if (data?.pushes?.length) parts.push(bars(connection, data.pushes, at, chosen?.seq, actions));
  else if (data?.timeline?.start) parts.push(columns(data, at, width));
  else if (data) parts.push(h("p", { class: "track-note" }, data.isRemoved ? "its pushes were removed from the inbox" : connection.pushes ? "no pushes in this time" : "no pushes"));
  return parts;
}

function bars(connection, items, at, chosen, actions) {
  const pushes = items.map((push) => {
    const from = Date.parse(push.received_at);
    return { ...push, from, until: push.finished_at ? Math.max(from, Date.parse(push.finished_at)) : serverNow() };
  });
  const arranged = arrange(pushes, at);
  const step = Math.min(BAR_STEP, BARS_HEIGHT / arranged.rows);
  const elements = arranged.bars.map((bar, index) => {
    const [first] = bar.pushes;
    const last = bar.pushes.at(-1);
    const many = bar.pushes.length > 1;
    const worst = OUTCOMES.findLast((name) => bar.pushes.some((push) => push.outcome === name)) ?? first.outcome;
    const text = many
      ? `${bar.pushes.length} pushes, #${first.seq} to #${last.seq}, ${tally(bar.pushes)}`
      : [`#${first.seq}, stream ${first.connection?.stream}, ${responseText(first)} ${first.outcome}`, first.fault?.rule && `rule ${first.fault.rule}`, first.delivery && `delivery: ${first.delivery}`].filter(Boolean).join(", ");
    const act = () => {
      if (!many) return actions.open(first.seq);
      // Pushes of the same millisecond cannot be separated by zooming.
      return last.from - first.from > 20 ? actions.zoom(first.from, Math.max(last.until, last.from + 1)) : actions.list(first.from, last.from + 1);
    };
    return h("div", {
      role: "option", id: `bar-${connection.id}-${index}`, class: `lane-bar is-${worst}${many ? " is-many" : ""}${deliveryClass(bar.pushes)}`,
      title: `${text}, ${dayTime(first.received_at)}, ${span(last.until - first.from)}`, "aria-label": text, "aria-selected": "false", "aria-current": bar.pushes.some((push) => push.seq === chosen) ? "true" : null, on: { click: act },
      style: { left: `${bar.left}px`, width: `${bar.right - bar.left}px`, top: `${bar.row * step}px`, height: `${step - 4}px`, ...(many ? { background: stripes(bar, at) } : {}) },
    });
  });
  return barList(connection, elements);
}

/** The pushes of one bar as stripes in the colors of their outcomes, at their times. */
function stripes(bar, at) {
  const stops = [];
  let end = 0;
  for (const push of bar.pushes) {
    const start = Math.max(end, at(push.from) - bar.left);
    const next = Math.max(start + 1, at(push.until) - bar.left);
    if (start > end) stops.push(`var(--line-strong) ${end.toFixed(1)}px ${start.toFixed(1)}px`);
    stops.push(`var(--${push.outcome}) ${start.toFixed(1)}px ${next.toFixed(1)}px`);
    end = next;
  }
  return `linear-gradient(90deg, ${stops.join(", ")})`;
}

function tally(pushes) {
  return OUTCOMES.map((name) => [name, pushes.filter((push) => push.outcome === name).length]).filter(([, number]) => number).map(([name, number]) => `${number} ${name}`).join(", ");
}

/** A line under the bar shows the delivery to a registered device, if it is known. */
function deliveryClass(pushes) {
  const states = pushes.map((push) => push.delivery).filter(Boolean);
  if (!states.length) return "";
  if (states.some((state) => state.startsWith("Discarded"))) return " has-discarded";
  return states.some((state) => state.startsWith("Stored")) ? " has-stored" : " has-delivered";
}

function columns({ timeline: { start, bucket_ms: length, counts }, matched }, at, width) {
  const left = (index) => at(Date.parse(start) + index * length);
  return svg("svg", { class: "track-columns", width, height: COLUMNS_HEIGHT, role: "img", "aria-label": `${pushCount(matched)}; zoom in to see each of them` },
    stack(counts, { left, width: Math.max(1, left(1) - left(0) - 1), highest: COLUMNS_HEIGHT - 2, bottom: COLUMNS_HEIGHT }));
}

/**
 * The bars of a track as one tab stop. The arrow keys select a bar, Enter and Space open its push. On a narrow screen,
 * bars can be too small for touch; the list has larger targets for the same pushes.
 */
function barList(connection, bars) {
  let active = -1;
  const choose = (index) => {
    bars[active]?.setAttribute("aria-selected", "false");
    active = Math.min(bars.length - 1, Math.max(0, index));
    bars[active].setAttribute("aria-selected", "true");
    bars[active].scrollIntoView({ block: "nearest", inline: "nearest" });
    list.setAttribute("aria-activedescendant", bars[active].id);
  };
  const handlers = {
    ArrowLeft: () => choose(active - 1), ArrowUp: () => choose(active - 1),
    ArrowRight: () => choose(active + 1), ArrowDown: () => choose(active + 1),
    Home: () => choose(0), End: () => choose(bars.length - 1),
    Enter: () => bars[active]?.click(), " ": () => bars[active]?.click(),
  };
  const list = h("div", {
    role: "listbox", class: "lane-bars", tabindex: "0", "aria-label": `Pushes of connection ${connection.id}`,
    on: {
      focus: () => active < 0 && choose(bars.findIndex((bar) => bar.hasAttribute("aria-current"))),
      keydown: (event) => {
        if (!handlers[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
        event.preventDefault();
        event.stopPropagation();
        handlers[event.key]();
      },
    },
  }, bars);
  return list;
}
