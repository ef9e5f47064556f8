// Timelines: a lane per connection, with events as marks and pushes as bars. Idle times are collapsed, so that short
// incidents are visible in long periods.
import { serverNow } from "./clock.js";
import { eventName, marks } from "./connections/marks.js";
import { h } from "./dom.js";
import { clockTime, counted } from "./format.js";
import { responseText } from "./summary.js";
import { visible } from "./visible.js";

export const LANE_FIELDS = "seq,received_at,finished_at,outcome,accepted,connection.id,connection.stream,served";

const FOLD = 34; // the width of a collapsed time in pixels
const EDGE = 16;
const LABEL = 96; // the width of a label on the axis in pixels
const LONGEST = 24_000; // of all parts in pixels
const BAR = 8; // the least distance of two bars in pixels
const MAX_ROWS = 8;
const BARS_TOP = 28; // the marks are above the bars

/**
 * A scale from times to pixels, the same for all parts. `width` is the available width, `density` the least pixels of a
 * millisecond; gaps longer than `quiet` milliseconds are collapsed.
 */
function timeScale(times, width, { density = 0, quiet = 400 } = {}) {
  const sorted = [...new Set(times)].sort((a, b) => a - b);
  if (!sorted.length) return { at: () => EDGE, folds: [], parts: [], width };
  const parts = [{ start: sorted[0], end: sorted[0] }];
  for (const time of sorted) {
    const last = parts.at(-1);
    if (time - last.end > quiet) parts.push({ start: time, end: time });
    else last.end = time;
  }
  const busy = parts.reduce((sum, part) => sum + Math.max(1, part.end - part.start), 0);
  const length = Math.max(parts.length * 40, width - 2 * EDGE - (parts.length - 1) * FOLD, Math.min(LONGEST, busy * density));
  const folds = [];
  let offset = EDGE;
  for (const [index, part] of parts.entries()) {
    part.offset = offset;
    part.length = Math.max(24, (Math.max(1, part.end - part.start) / busy) * length);
    offset += part.length;
    if (index < parts.length - 1) {
      folds.push({ offset, ms: parts[index + 1].start - part.end });
      offset += FOLD;
    }
  }
  const at = (time) => {
    const part = parts.findLast((one) => one.start <= time) ?? parts[0];
    const share = part.end > part.start ? Math.min(1, Math.max(0, (time - part.start) / (part.end - part.start))) : 0;
    return part.offset + share * (part.length - 8);
  };
  return { at, folds, parts, width: offset + EDGE };
}

/** The least pixels of a millisecond with which the bars of a connection are at their times and not on each other. */
function densityOf(pushes) {
  const numbers = new Map();
  for (const push of pushes) numbers.set(push.received_at, (numbers.get(push.received_at) ?? 0) + 1);
  const starts = [...numbers].map(([at, number]) => ({ at: Date.parse(at), number })).sort((a, b) => a.at - b.at);
  return starts.slice(1).reduce((density, one, index) => Math.max(density, (starts[index].number * BAR) / (one.at - starts[index].at)), 0);
}

/** Returns the lanes as an element. `open(seq)` is called for a click on a bar. */
export function lanes(connections, pushes, { width, chosen = null, open, now = serverNow() }) {
  const byConnection = Map.groupBy(pushes, (push) => push.connection?.id);
  const times = [];
  for (const connection of connections) for (const event of connection.events ?? []) times.push(Date.parse(event.at));
  for (const push of pushes) times.push(Date.parse(push.received_at), push.finished_at ? Date.parse(push.finished_at) : now);
  const scale = timeScale(times.filter(Number.isFinite), width, { density: Math.max(0, ...[...byConnection.values()].map(densityOf)) });
  return h("div", { class: "lanes", style: { width: `${scale.width}px` } },
    axis(scale), connections.map((connection) => lane(connection, byConnection.get(connection.id) ?? [], scale, { chosen, open, now })));
}

/** The axis: start times of parts, where they fit, and durations of collapsed times. */
function axis(scale) {
  let free = -Infinity;
  const labels = [];
  for (const part of scale.parts) {
    const offset = Math.min(part.offset, scale.width - LABEL);
    if (offset < free) continue;
    labels.push(h("span", { style: { left: `${offset}px` } }, clockTime(new Date(part.start))));
    free = offset + LABEL;
  }
  return h("div", { class: "lane-axis", "aria-hidden": "true" }, labels,
    scale.folds.map((fold) => h("span", { class: "fold", style: { left: `${fold.offset}px`, width: `${FOLD}px` }, title: "idle" }, span(fold.ms))));
}

function span(ms) {
  if (ms < 1000) return `${Math.round(ms)}ms`;
  if (ms < 60000) return `${Math.round(ms / 1000)}s`;
  return ms < 3600000 ? `${Math.round(ms / 60000)}min` : `${Math.round(ms / 3600000)}h`;
}

/** The number of created bars, for unique identifiers. */
let barCount = 0;

function lane(connection, pushes, scale, { chosen, open, now }) {
  let rightmost = 0;
  const rows = []; // the end time and the right edge of the last bar of each row
  const bars = pushes.map((push) => {
    const start = Date.parse(push.received_at);
    const end = push.finished_at ? Date.parse(push.finished_at) : now;
    // Only concurrent pushes need different rows.
    let row = rows.findIndex((one) => one.end <= start);
    if (row < 0) row = rows.length < MAX_ROWS ? rows.length : rows.reduce((best, one, index) => (one.end < rows[best].end ? index : best), 0);
    // Pushes of the same moment follow each other.
    const left = Math.max(scale.at(start), (rows[row]?.right ?? -1) + 1);
    const right = Math.max(left + 7, scale.at(end));
    rows[row] = { end, right };
    rightmost = Math.max(rightmost, right);
    const description = `#${push.seq}, stream ${push.connection?.stream}, ${responseText(push)} ${push.outcome}`;
    barCount += 1;
    return h("div", {
      role: "option", id: `bar-${barCount}`, class: `lane-bar is-${push.outcome}`, title: `${description}, ${clockTime(push.received_at)}`,
      "aria-label": description, "aria-selected": "false", "aria-current": push.seq === chosen ? "true" : null,
      on: { click: () => open(push.seq) },
      style: { left: `${left}px`, width: `${right - left}px`, top: `${2 + row * 12}px` },
    });
  });
  const height = 38 + Math.max(1, rows.length) * 12;
  return h("section", { class: `lane is-${connection.state}`, "aria-label": `Connection ${connection.id}`, style: { "min-width": `${rightmost + EDGE}px` } },
    h("header", { class: "lane-head" }, h("strong", {}, connection.id), " ", h("span", { class: `chip is-${connection.state}` }, connection.state),
      h("span", { class: "quiet" }, ` ${connection.client ?? ""} · ${connection.tls ?? "no TLS"} · pushes: ${connection.pushes ?? pushes.length}`)),
    h("div", { class: "lane-track", style: { height: `${height}px` } },
      scale.folds.map((fold) => h("span", { class: "fold", style: { left: `${fold.offset}px`, width: `${FOLD}px` } })),
      marks(connection.events ?? [], { from: -Infinity, until: Infinity, at: scale.at }, scale.width), bars.length > 0 && barList(connection, bars)));
}

/**
 * The bars of a lane as one tab stop. The arrow keys select a bar, Enter and Space open its push. On a narrow screen,
 * bars can be too small for touch; the list has larger targets for the same pushes.
 */
export function barList(connection, bars, top = BARS_TOP) {
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
    style: { top: `${top}px` },
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

/** The events of a connection as a table. */
export function eventTable(connection) {
  return h("table", { class: "table" },
    h("thead", {}, h("tr", {}, ["Time", "Event", "Details"].map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, (connection.events ?? []).map((event) => h("tr", {}, h("td", { class: "mono" }, clockTime(event.at)),
      h("td", {}, h("span", { class: `event-name event-${event.event}` }, eventName(event.event))), h("td", { class: "wrap" }, visible(event.detail ?? ""))))),
    connection.events_dropped > 0 && h("caption", {}, `Not stored: ${counted(connection.events_dropped, "event")} between the first and the last`));
}
