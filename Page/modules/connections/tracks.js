// The rows of the time line. Only the visible rows exist, and only their pushes in the visible time are loaded.
import { ticks } from "../charts/scale.js";
import { button, h, oneAtATime, replace, settled } from "../dom.js";
import { count, counted } from "../format.js";
import { quoted } from "../terms.js";
import { loadTrack, ROW_HEIGHT, track } from "./track.js";
import { TimeWindow } from "./window.js";

const HEAD = 176; // the width of the labels in pixels
const NARROW = 640;
const MARGIN = 600; // milliseconds of the last minute after the newest event

export class Tracks {
  /** `actions`: `open(seq)`, `search(q)`, and `select(id)` if a connection can be selected. `chosen`: the push that is marked, as `{seq, at}`. */
  constructor(actions, chosen = null) {
    this.actions = actions;
    this.chosen = chosen;
    this.connections = [];
    this.newest = 0;
    this.version = 0; // counts how often the connections were shown
    this.selected = null;
    this.rows = new Map(); // by the id of the connection: {element, track, key, data}
    this.window = new TimeWindow(() => this.changed());
    this.axis = h("div", { class: "tracks-axis", title: "Drag to zoom", on: { pointerdown: (event) => this.beginZoom(event) } });
    this.space = h("div", { class: "tracks-space" });
    this.box = h("div", { class: "tracks-box", tabindex: "0", role: "group", "aria-label": "Connections over time. The arrow keys move, plus and minus zoom.",
      on: { scroll: () => this.draw(), keydown: (event) => this.onKey(event), wheel: (event) => this.onWheel(event) } }, this.space);
    this.box.addEventListener("wheel", (event) => event.ctrlKey && event.preventDefault(), { passive: false });
    this.element = h("div", { class: "tracks" }, this.controls(), this.axis, this.box);
    this.loadVisible = settled(oneAtATime(() => this.load()), 120);
    new ResizeObserver(() => this.element.isConnected && this.changed()).observe(this.box);
  }

  controls() {
    const act = (label, text, action) => button(text, action, { class: "small", "aria-label": label, title: label });
    this.rangeText = h("span", { class: "quiet tracks-range", role: "status" });
    return h("div", { class: "tracks-controls", role: "group", "aria-label": "Time line" },
      act("Earlier", "←", () => this.window.move(-0.5)), act("Later", "→", () => this.window.move(0.5)),
      act("Zoom in", "+", () => this.zoom(2)), act("Zoom out", "−", () => this.zoom(0.5)),
      button("All", () => this.window.showAll(), { class: "small" }),
      this.chosen && button("This push", () => this.showChosen(), { class: "small" }),
      !this.chosen && button("Last minute", () => this.window.show(this.newest + MARGIN - 60000, this.newest + MARGIN), { class: "small" }), this.rangeText);
  }

  get isNarrow() { return this.box.clientWidth < NARROW; }
  get width() { return Math.max(120, this.box.clientWidth - (this.isNarrow ? 16 : HEAD + 16)); }
  get rowHeight() { return ROW_HEIGHT + (this.isNarrow ? 26 : 0); }

  /** What the data of a row depends on, besides the connection. */
  get key() { return `${this.window.from} ${this.window.until} ${this.width} ${this.version}`; }

  /** Shows connections, newest first. `newest`: the time of the newest event, after which the time line has a margin. */
  show(connections, from, until, newest = until) {
    this.connections = connections;
    this.newest = newest;
    this.window.setLimits(from, until);
    const ids = new Set(connections.map((one) => one.id));
    for (const [id, row] of this.rows) {
      if (ids.has(id)) continue;
      row.element.remove();
      this.rows.delete(id);
    }
    this.version += 1;
    this.changed();
  }

  changed() {
    const { width } = this;
    const left = this.isNarrow ? 0 : HEAD;
    this.element.classList.toggle("is-narrow", this.isNarrow);
    replace(this.axis, ticks(this.window.from, this.window.until, width).map(({ time, text }) =>
      h("span", { style: { left: `${left + 8 + this.window.at(time, width)}px` } }, text)));
    const [from, until] = this.window.all;
    this.rangeText.textContent = this.window.followsAll ? "" : `${count(Math.round(((until - from) / this.window.length) * 10) / 10)}× zoom`;
    const height = `${this.connections.length * this.rowHeight}px`;
    this.space.style.setProperty("height", height);
    this.box.style.setProperty("height", height);
    this.draw({ isStale: true });
    this.loadVisible();
  }

  get visible() {
    const first = Math.max(0, Math.floor(this.box.scrollTop / this.rowHeight));
    return [first, Math.min(this.connections.length, first + Math.ceil(this.box.clientHeight / this.rowHeight) + 1)];
  }

  draw({ isStale = false } = {}) {
    const [first, end] = this.visible;
    const shown = new Map(this.connections.slice(first, end).map((one, index) => [one.id, { connection: one, index: first + index }]));
    for (const [id, row] of this.rows) {
      if (shown.has(id) || row.element.contains(document.activeElement)) continue;
      row.element.remove();
      this.rows.delete(id);
    }
    for (const [id, { connection, index }] of shown) {
      const isNew = !this.rows.has(id);
      if (isNew) this.create(id);
      const row = this.rows.get(id);
      row.element.style.setProperty("transform", `translateY(${index * this.rowHeight}px)`);
      row.element.style.setProperty("height", `${this.rowHeight}px`);
      if (isNew || isStale) this.fill(row, connection);
    }
    if (!isStale) this.loadVisible();
  }

  create(id) {
    const head = this.actions.select ? h("button", { type: "button", class: "track-head", on: { click: () => this.actions.select(id) } }) : h("div", { class: "track-head" });
    const line = h("div", { class: "track-line" });
    const element = h("section", { class: "track", "aria-label": `Connection ${id}` }, head, line);
    this.space.append(element);
    this.rows.set(id, { element, head, line, key: null, data: null });
  }

  fill(row, connection) {
    const { width } = this;
    row.element.setAttribute("aria-busy", String(row.key !== this.key));
    // An unchanged row keeps its elements, and with them the selected bar.
    const content = [this.window.from, this.window.until, width, connection.id === this.selected, JSON.stringify(connection), row.data];
    if (row.content?.every((part, index) => part === content[index])) return;
    row.content = content;
    row.element.classList.toggle("is-chosen", connection.id === this.selected);
    if (this.actions.select) row.head.setAttribute("aria-pressed", String(connection.id === this.selected));
    const hadFocus = row.line.contains(document.activeElement);
    const facts = [connection.client, connection.tls ?? "no TLS"].filter(Boolean).join(" · ");
    replace(row.head, h("span", { class: "track-name" }, h("strong", {}, connection.id), " ", h("span", { class: `chip is-${connection.state}` }, connection.state)),
      h("span", { class: "quiet" }, counted(connection.pushes, "push", "pushes")), h("span", { class: "quiet track-facts" }, facts));
    replace(row.line, track(connection, row.data, this.window, width, {
      chosen: this.chosen, open: this.actions.open, zoom: (from, until) => this.window.show(from, until), list: (from, until) => this.actions.search(`connection:${quoted(connection.id)} since:"${new Date(from).toISOString()}" until:"${new Date(until).toISOString()}"`),
    }));
    if (hadFocus) row.line.querySelector("[tabindex]")?.focus({ preventScroll: true });
  }

  /** Loads the visible rows that changed. */
  async load() {
    if (!this.element.isConnected) return;
    const [first, end] = this.visible;
    const { from, until } = this.window;
    const { key, width } = this;
    const isAll = this.window.followsAll;
    const wanted = this.connections.slice(first, end).filter((one) => this.rows.has(one.id) && this.rows.get(one.id).key !== key);
    await Promise.all(wanted.map(async (connection) => {
      const data = await loadTrack(connection, { from, until, isAll }, width).catch((error) => ({ error: error.message }));
      const row = this.rows.get(connection.id);
      // What was loaded for another time would be drawn as if nothing else happened in this one.
      if (!row || from !== this.window.from || until !== this.window.until || width !== this.width) return;
      if (JSON.stringify(data) !== JSON.stringify(row.data)) row.data = data;
      row.key = key;
      this.fill(row, connection);
    }));
  }

  select(id) {
    this.selected = id;
    this.draw({ isStale: true });
  }

  // Zooming

  /** Zooms to the active bar; without one, to the marked push or to what happened nearest to the middle, so that something stays in view. */
  zoom(factor) {
    const bar = this.space.querySelector(".lane-bar[aria-selected=true]");
    const place = bar ? bar.offsetLeft + bar.offsetWidth / 2 : this.nearest();
    this.window.zoom(factor, Math.min(1, Math.max(0, place / this.width)));
  }

  /** The place in pixels of the marked push, or of the push nearest to the middle. */
  nearest() {
    const { window, width } = this;
    const middle = width / 2;
    const chosen = this.chosen ? window.at(this.chosen.at, width) : -1;
    if (chosen >= 0 && chosen <= width) return chosen;
    let best = null;
    for (const { data } of this.rows.values()) {
      for (const time of timesOf(data)) {
        const place = window.at(time, width);
        if (place >= 0 && place <= width && (best === null || Math.abs(place - middle) < Math.abs(best - middle))) best = place;
      }
    }
    return best ?? middle;
  }

  /** Shows the marked push with those around it. */
  showChosen() {
    this.window.show(this.chosen.from, this.chosen.until);
  }

  onKey(event) {
    if (event.target !== this.box || event.ctrlKey || event.metaKey || event.altKey) return;
    const actions = { ArrowLeft: () => this.window.move(-0.25), ArrowRight: () => this.window.move(0.25), "+": () => this.zoom(2), "=": () => this.zoom(2),
      "-": () => this.zoom(0.5), "0": () => this.window.showAll() };
    if (!actions[event.key]) return;
    event.preventDefault();
    event.stopPropagation();
    actions[event.key]();
  }

  onWheel(event) {
    if (!event.ctrlKey) return;
    const box = this.box.getBoundingClientRect();
    const left = this.isNarrow ? 8 : HEAD + 8;
    this.window.zoom(event.deltaY < 0 ? 1.25 : 0.8, Math.min(1, Math.max(0, (event.clientX - box.left - left) / this.width)));
  }

  beginZoom(event) {
    const box = this.axis.getBoundingClientRect();
    const left = box.left + (this.isNarrow ? 8 : HEAD + 8);
    const position = (one) => Math.min(this.width, Math.max(0, one.clientX - left));
    const start = position(event);
    const range = h("span", { class: "tracks-selection" });
    this.axis.append(range);
    this.axis.setPointerCapture(event.pointerId);
    const move = (one) => {
      const [low, high] = [start, position(one)].sort((a, b) => a - b);
      range.style.setProperty("left", `${left - box.left + low}px`);
      range.style.setProperty("width", `${high - low}px`);
    };
    const end = (one) => {
      this.axis.removeEventListener("pointermove", move);
      range.remove();
      const [low, high] = [start, position(one)].sort((a, b) => a - b);
      if (one.type === "pointerup" && high - low > 4) this.window.show(this.window.timeAt(low, this.width), this.window.timeAt(high, this.width));
    };
    this.axis.addEventListener("pointermove", move);
    this.axis.addEventListener("pointerup", end, { once: true });
    this.axis.addEventListener("pointercancel", end, { once: true });
  }
}

/** The times at which the loaded pushes of a row began. */
function timesOf(data) {
  if (data?.pushes) return data.pushes.map((push) => Date.parse(push.received_at));
  const { start, bucket_ms: length, counts } = data?.timeline ?? {};
  if (!start) return [];
  const columns = new Set(Object.values(counts).flatMap((list) => list.flatMap((number, index) => (number ? [index] : []))));
  return [...columns].map((index) => Date.parse(start) + (index + 0.5) * length);
}
