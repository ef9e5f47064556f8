// The columns of the list: which are shown, how wide they are, and by which the list is sorted.
import { button, h, replace } from "./dom.js";
import { icon } from "./icons.js";
import { menuButton } from "./menu.js";
import { roving } from "./roving.js";
import { go, shown } from "./route.js";
import { store, stored } from "./settings.js";

/**
 * `sort` is the field of the API; a column without it cannot be sorted. A column whose width was not changed shrinks to `least`
 * in a narrow list, and has at most `share` percent of it; `grows` takes the remaining width. `grouped`: the least width if retries are grouped.
 */
const COLUMNS = [
  { id: "response", name: "Status", sort: "status", width: 62, least: 58 },
  { id: "reason", name: "Reason", sort: "reason", width: 136, least: 76, share: 19 },
  { id: "title", name: "Content", sort: null, width: 120, least: 100, grows: true },
  { id: "topic", name: "Topic", sort: "topic", width: 128, least: 72, share: 13 },
  { id: "type", name: "Type", sort: "push_type", width: 96, least: 60 },
  { id: "token", name: "Token", sort: "device_token", width: 76, least: 72 },
  { id: "attempt", name: "Attempt", sort: "attempt", width: 62, least: 60, grouped: 88 },
  { id: "flags", name: "Findings", sort: null, width: 30, least: 30, head: "flag" },
  { id: "priority", name: "Priority", sort: "priority", width: 72, least: 48 },
  { id: "size", name: "Size", sort: "size", width: 80, least: 56 },
  { id: "latency", name: "Latency", sort: "latency", width: 84, least: 56 },
  { id: "connection", name: "Connection", sort: "connection", width: 96, least: 60 },
  { id: "collapse", name: "Collapse id", sort: "collapse_id", width: 110, least: 60 },
  { id: "outcome", name: "Outcome", sort: "outcome", width: 90, least: 70 },
  { id: "seq", name: "Number", sort: "seq", width: 74, least: 52 },
  { id: "clock", name: "Clock time", sort: "seq", width: 134, least: 92 },
  { id: "since", name: "Since start", sort: "seq", width: 84, least: 72 },
  { id: "time", name: "Time", sort: "seq", width: 54, least: 48 },
];
const DEFAULT = ["response", "reason", "title", "topic", "token", "attempt", "flags", "time"];
const MIN_WIDTH = 30;
const GAP = 8; // as in list.css
const STEP = 16; // pixels for an arrow key

const leastOf = (column) => (shown.fold && column.grouped) || column.least;

export class Columns {
  /** @param onChange called when columns or widths change. */
  constructor(onChange) {
    this.onChange = onChange;
    const kept = stored("columns", {});
    const names = Array.isArray(kept.shown) ? COLUMNS.filter((one) => kept.shown.includes(one.id)).map((one) => one.id) : [];
    this.ids = names.length ? names : DEFAULT;
    // The widths that were changed.
    this.widths = Object.fromEntries(COLUMNS.filter((one) => Number.isFinite(kept.widths?.[one.id])).map((one) => [one.id, Math.max(MIN_WIDTH, kept.widths[one.id])]));
    this.head = h("div", { class: "column-heads", role: "group", "aria-label": "Columns" });
    const chooser = menuButton(icon("columns"), { label: "Columns", title: "Choose the columns of the list", name: "Columns to show", onOpen: () => this.drawMenu() });
    // ← and → change the width of a column.
    roving(this.head, [["ArrowUp"], ["ArrowDown"]]);
    this.menu = chooser.menu;
    this.chooser = chooser.element;
    this.draw();
  }

  get shown() {
    return COLUMNS.filter((one) => this.ids.includes(one.id));
  }

  /** The columns as a CSS grid. */
  get template() {
    return this.shown.map((column) => {
      const { id, grows, share } = column;
      const least = leastOf(column);
      const width = `${Math.max(column.width, least)}px`;
      return grows ? `minmax(${this.widths[id] ?? least}px, 1fr)` : this.widths[id] ? `${this.widths[id]}px` : `minmax(${least}px, ${share ? `min(${width}, ${share}%)` : width})`;
    }).join(" ");
  }

  /** The least width of all columns in pixels. */
  get width() {
    return this.shown.reduce((sum, one) => sum + (this.widths[one.id] ?? leastOf(one)), 0) + (this.shown.length - 1) * GAP + 24;
  }

  drawMenu() {
    replace(this.menu, COLUMNS.map((one) => h("label", { class: "choice-line" },
      h("input", { type: "checkbox", checked: this.ids.includes(one.id), on: { change: (event) => this.setShown(one.id, event.target.checked) } }), h("span", {}, one.name))),
    button("Reset the columns", () => this.reset(), { class: "small" }));
  }

  setShown(id, isShown) {
    const ids = isShown ? [...this.ids, id] : this.ids.filter((one) => one !== id);
    // Without any column there would be nothing to click.
    if (ids.length) this.ids = ids; else this.drawMenu();
    this.changed();
  }

  reset() {
    this.ids = DEFAULT;
    this.widths = {};
    this.drawMenu();
    this.changed();
  }

  /** The width of a shown column now. */
  widthOf(id) {
    return this.head.querySelector(`[data-column="${id}"]`).parentElement.getBoundingClientRect().width;
  }

  setWidth(id, width) {
    this.widths[id] = Math.round(Math.min(900, Math.max(MIN_WIDTH, width)));
    this.changed();
  }

  changed() {
    store("columns", { shown: this.ids, widths: this.widths });
    this.draw();
    this.onChange();
  }

  /** Draws the header. */
  draw() {
    const focused = document.activeElement?.dataset?.column;
    replace(this.head, this.shown.map((one) => this.cell(one)));
    this.head.style.setProperty("grid-template-columns", this.template);
    if (focused) this.head.querySelector(`[data-column="${focused}"]`)?.focus();
  }

  cell(column) {
    const isSorted = column.sort && (shown.sort.replace(/^-/, "") || "seq") === column.sort && (shown.sort || column.id === "time" || !this.ids.includes("time")) && !(column.sort === "seq" && column.id !== "time" && this.ids.includes("time"));
    const isDescending = shown.sort ? shown.sort.startsWith("-") : true;
    const arrow = isSorted ? (isDescending ? " ↓" : " ↑") : "";
    const state = isSorted ? (isDescending ? ", sorted descending" : ", sorted ascending") : "";
    const label = h("button", {
      type: "button", class: "column-name", data: { column: column.id },
      title: column.sort ? `Sort by ${column.name}; ← → change the width` : `The list cannot be sorted by ${column.name}; ← → change the width`,
      "aria-label": column.sort ? `Sort by ${column.name}${state}` : `${column.name}, not sortable`,
      on: { click: () => column.sort && this.sort(column), keydown: (event) => this.onKey(event, column) },
    }, column.head ? icon(column.head) : column.name, arrow);
    return h("div", { class: "column-head" }, label, this.handle(column));
  }

  sort(column) {
    const isHere = (shown.sort.replace(/^-/, "") || "seq") === column.sort;
    const wasDescending = shown.sort ? shown.sort.startsWith("-") : true;
    const next = isHere ? (wasDescending ? column.sort : `-${column.sort}`) : column.sort === "seq" ? "-seq" : column.sort;
    go({ sort: next === "-seq" ? "" : next });
  }

  onKey(event, column) {
    const step = { ArrowLeft: -STEP, ArrowRight: STEP }[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    this.setWidth(column.id, this.widthOf(column.id) + step);
  }

  handle(column) {
    const handle = h("span", { class: "column-handle", title: "Drag to change the width" });
    handle.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      const [start, width] = [event.clientX, this.widthOf(column.id)];
      const move = (to) => this.setWidth(column.id, width + to.clientX - start);
      addEventListener("pointermove", move);
      addEventListener("pointerup", () => removeEventListener("pointermove", move), { once: true });
    });
    return handle;
  }
}
