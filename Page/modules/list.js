// The list of pushes. Only visible rows exist in the document, because there can be a hundred thousand.
import { button, h, replace, settled } from "./dom.js";
import { ago, count } from "./format.js";
import { rowContent, rowLabel } from "./row.js";

const ROW_HEIGHT = 58; // as in list.css
const OVERSCAN = 8;

export class List {
  /** @param open called with the seq of a push to show. */
  constructor(records, open) {
    this.records = records;
    this.open = open;
    this.selected = null;
    this.attempts = null;
    this.anchor = null;
    this.drawn = new Map();
    this.isOver = false;
    this.isScrolledByUser = false;
    this.fetch = settled((first, last) => this.records.want(first, last), 40);
    this.space = h("div", { class: "list-space", role: "presentation" });
    this.box = h("div", {
      class: "list", role: "listbox", tabindex: "0", "aria-label": "Pushes, newest first",
      on: {
        scroll: () => this.onScroll(), click: (event) => this.onClick(event),
        wheel: () => this.onUserScroll(), touchmove: () => this.onUserScroll(),
      },
    }, this.space);
    this.pill = button("", () => this.toTop(), { class: "pill", hidden: true });
    this.note = h("div", { class: "list-note", hidden: true });
    this.element = h("div", {
      class: "list-frame", on: { pointerenter: () => { this.isOver = true; }, pointerleave: () => this.onLeave() },
    }, this.box, this.pill, this.note);
    this.unseen = 0;
    new ResizeObserver(() => this.draw()).observe(this.box);
    setInterval(() => this.refreshTimes(), 5000);
  }

  // Drawing

  /** Draws the visible rows in the next frame. */
  draw() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = null;
      this.drawNow();
    });
  }

  drawNow() {
    const length = this.records.length;
    this.setHeight();
    this.findPlace();
    const first = Math.max(0, Math.floor(this.box.scrollTop / ROW_HEIGHT) - OVERSCAN);
    const last = Math.min(length - 1, Math.ceil((this.box.scrollTop + this.box.clientHeight) / ROW_HEIGHT) + OVERSCAN);
    const visible = new Map();
    for (let index = first; index <= last; index += 1) {
      const seq = this.records.seqAt(index);
      const key = seq ?? `at ${index}`;
      const row = seq === null ? null : this.records.row(seq);
      let drawn = this.drawn.get(key);
      if (!drawn) {
        drawn = { element: h("div", { class: "row", role: "option" }) };
        this.space.append(drawn.element);
      }
      this.drawn.delete(key);
      visible.set(key, drawn);
      this.position(drawn, index, seq, row, length);
    }
    for (const { element } of this.drawn.values()) element.remove();
    this.drawn = visible;
    this.markSelected();
    if (length) this.fetch(Math.max(0, first - 20), Math.min(length - 1, last + 20));
  }

  /** Sets the scrollable height, which is required before scrolling. */
  setHeight() {
    this.space.style.setProperty("height", `${this.records.length * ROW_HEIGHT}px`);
  }

  position(drawn, index, seq, row, length) {
    const { element } = drawn;
    if (drawn.index !== index) {
      drawn.index = index;
      element.style.setProperty("transform", `translateY(${index * ROW_HEIGHT}px)`);
    }
    element.setAttribute("aria-posinset", index + 1);
    element.setAttribute("aria-setsize", length);
    const attempts = this.attempts?.get(row?.push_key) ?? null;
    if (drawn.isFilled && drawn.row === row && drawn.attempts === attempts) return;
    Object.assign(drawn, { row, attempts, isFilled: true });
    if (!row) {
      const isMissing = seq !== null && this.records.missing.has(seq);
      element.setAttribute("aria-label", isMissing ? "evicted from the inbox" : "loading");
      replace(element, h("span", { class: "row-empty" }, isMissing ? "evicted from the inbox" : ""));
      return;
    }
    element.id = `push-${seq}`;
    element.dataset.seq = seq;
    element.setAttribute("aria-label", rowLabel(row));
    replace(element, rowContent(row, attempts));
  }

  refreshTimes() {
    for (const { element, row } of this.drawn.values()) {
      const time = row && element.querySelector(".row-time");
      if (time) time.textContent = ago(row.received_at);
    }
  }

  // Scrolling

  onScroll() {
    if (this.box.scrollTop < ROW_HEIGHT / 2) {
      this.isScrolledByUser = false;
      this.setUnseen(0);
    }
    this.draw();
  }

  onUserScroll() {
    this.isScrolledByUser = true;
    this.anchor = null;
  }

  /** Keeps the top row in place after a reload with `added` new rows. */
  keepPlace(added) {
    const index = Math.floor(this.box.scrollTop / ROW_HEIGHT);
    const top = this.box.scrollTop < ROW_HEIGHT / 2 ? null : [...this.drawn.values()].find((one) => one.index === index);
    this.anchor = top?.row ? { seq: top.row.seq, offset: this.box.scrollTop - index * ROW_HEIGHT } : null;
    if (this.anchor) this.setUnseen(this.unseen + added);
  }

  findPlace() {
    const index = this.anchor ? this.records.indexOf(this.anchor.seq) : -1;
    if (index < 0) return;
    this.box.scrollTop = index * ROW_HEIGHT + this.anchor.offset;
    this.anchor = null;
  }

  /** Scrolls back to the newest rows when the pointer leaves, unless the user has scrolled. */
  onLeave() {
    this.isOver = false;
    if (!this.isScrolledByUser && this.unseen) this.toTop();
  }

  /** Keeps the visible rows in place after `added` rows at the top. */
  grew(added) {
    const wasAtTop = this.box.scrollTop < ROW_HEIGHT / 2;
    if (added && (!wasAtTop || this.isOver)) {
      this.setHeight();
      this.box.scrollTop += added * ROW_HEIGHT;
      this.setUnseen(this.unseen + added);
      return this.drawNow(); // Draws immediately, so that rows and scroll position change together.
    }
    return this.draw();
  }

  setUnseen(number) {
    this.unseen = number;
    this.pill.hidden = number === 0;
    this.pill.textContent = `↑ ${count(number)} new`;
  }

  toTop() {
    this.isScrolledByUser = false;
    this.box.scrollTop = 0;
    this.setUnseen(0);
    this.draw();
  }

  /** Shows a message instead of rows; null removes it. */
  showNotice(content) {
    this.note.hidden = content === null;
    replace(this.note, content);
  }

  // Selecting

  onClick(event) {
    const seq = Number(event.target.closest(".row")?.dataset.seq);
    if (seq) this.open(seq);
    this.box.focus({ preventScroll: true });
  }

  /** Selects a push without opening it. */
  select(seq) {
    this.selected = seq;
    this.markSelected();
  }

  markSelected() {
    for (const { element, row } of this.drawn.values()) {
      element.setAttribute("aria-selected", String(row !== null && row.seq === this.selected));
    }
    const active = this.selected !== null && this.drawn.has(this.selected) ? `push-${this.selected}` : null;
    if (active) this.box.setAttribute("aria-activedescendant", active);
    else this.box.removeAttribute("aria-activedescendant");
  }

  /** The seq `step` rows after the selected one, or at the end; null in an empty list. */
  adjacent(step) {
    const length = this.records.length;
    if (!length) return null;
    const here = this.selected === null ? -1 : this.records.indexOf(this.selected);
    const index = here < 0 ? Math.max(0, Math.floor(this.box.scrollTop / ROW_HEIGHT)) : here + step;
    return this.records.seqAt(Math.max(0, Math.min(length - 1, index)));
  }

  /** Scrolls a push into view. */
  reveal(seq) {
    const index = this.records.indexOf(seq);
    if (index < 0) return;
    const top = index * ROW_HEIGHT;
    this.setHeight();
    if (top < this.box.scrollTop) this.box.scrollTop = top;
    else if (top + ROW_HEIGHT > this.box.scrollTop + this.box.clientHeight) {
      this.box.scrollTop = top + ROW_HEIGHT - this.box.clientHeight;
    }
    this.isScrolledByUser = this.box.scrollTop > ROW_HEIGHT / 2;
    this.draw();
  }
}
