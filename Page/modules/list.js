// The list of pushes. Only visible rows exist in the document, because there can be a hundred thousand.
import { button, h, replace, throttled } from "./dom.js";
import { ago, count } from "./format.js";
import { highlight } from "./highlight.js";
import { rowCells, rowLabel, rowLines } from "./row.js";
import { Selection } from "./selection.js";
import { isSeq, seqOf } from "./seq.js";

// The heights of rows as in list.css: in columns, and in two lines if the list is narrower than NARROW.
const ROW_HEIGHT = 32;
const LINES_HEIGHT = 58;
const NARROW = 560;
const OVERSCAN = 8;

export class List {
  /**
   * `callbacks`: `searchedTexts()` the texts to mark; `open(seq)` shows a push, `search(condition)` adds a condition, `onDrawn()` is called after rows were drawn,
   * `onSelect()` when the selection changed, `onReload()` sorts again.
   */
  constructor(records, columns, callbacks) {
    this.records = records;
    this.columns = columns;
    this.callbacks = callbacks;
    this.selection = new Selection(records, () => {
      this.markSelected();
      callbacks.onSelect();
    });
    this.opened = null;
    this.wanted = null;
    this.attempts = null;
    this.anchor = null;
    this.drawn = new Map();
    this.isOver = false;
    this.isScrolledByUser = false;
    this.isNarrow = false;
    this.isTapSelecting = false; // a click selects, as on a phone, which has no Control key
    this.unseen = 0;
    this.fetch = throttled((first, last) => this.records.want(first, last), 80);
    this.space = h("div", { class: "list-space", role: "presentation" });
    this.box = h("div", {
      class: "list", role: "listbox", tabindex: "0", "aria-label": "Pushes, newest first", "aria-multiselectable": "true",
      on: {
        scroll: () => this.onScroll(), click: (event) => this.onClick(event), keydown: (event) => this.onKey(event),
        wheel: () => this.onUserScroll(), touchmove: () => this.onUserScroll(),
        // A click with Shift would select text.
        mousedown: (event) => event.shiftKey && event.preventDefault(),
      },
    }, this.space);
    this.pill = button("", () => (this.records.sort ? callbacks.onReload() : this.toTop()), { class: "pill", hidden: true });
    this.note = h("div", { class: "list-note", hidden: true });
    this.element = h("div", {
      class: "list-frame", on: { pointerenter: () => { this.isOver = true; }, pointerleave: () => this.onLeave() },
    }, columns.head, h("div", { class: "list-area" }, this.box, this.pill, this.note));
    new ResizeObserver(() => this.onResize()).observe(this.box);
    setInterval(() => this.refreshTimes(), 5000);
  }

  get rowHeight() {
    return this.isNarrow ? LINES_HEIGHT : ROW_HEIGHT;
  }

  get selected() {
    return this.selection.current;
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
    this.findWanted();
    const first = Math.max(0, Math.floor(this.box.scrollTop / this.rowHeight) - OVERSCAN);
    const last = Math.min(length - 1, Math.ceil((this.box.scrollTop + this.box.clientHeight) / this.rowHeight) + OVERSCAN);
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
    highlight([...this.space.querySelectorAll(".row-title")], this.callbacks.searchedTexts());
    this.callbacks.onDrawn();
  }

  /** Sets the scrollable height, which is required before scrolling. */
  setHeight() {
    this.space.style.setProperty("height", `${this.records.length * this.rowHeight}px`);
  }

  position(drawn, index, seq, row, length) {
    const { element } = drawn;
    if (drawn.index !== index) {
      drawn.index = index;
      element.style.setProperty("transform", `translateY(${index * this.rowHeight}px)`);
    }
    element.setAttribute("aria-posinset", index + 1);
    element.setAttribute("aria-setsize", length);
    const attempts = this.attempts?.get(row?.seq) ?? null;
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
    element.setAttribute("aria-label", rowLabel(row, attempts));
    replace(element, this.isNarrow ? rowLines(row, attempts) : rowCells(row, this.columns.shown, attempts));
  }

  /** Draws all rows anew, because the columns or the width changed. */
  drawAgain() {
    const height = this.rowHeight;
    this.isNarrow = this.box.clientWidth < NARROW;
    const top = this.box.scrollTop / height;
    this.element.classList.toggle("is-narrow", this.isNarrow);
    this.box.style.setProperty("--columns", this.columns.template);
    this.space.style.setProperty("min-width", this.isNarrow ? "0" : `${this.columns.width}px`);
    for (const { element } of this.drawn.values()) element.remove();
    this.drawn = new Map();
    this.setHeight();
    if (height !== this.rowHeight) this.box.scrollTop = top * this.rowHeight;
    this.drawNow();
  }

  onResize() {
    const isNarrow = this.box.clientWidth < NARROW;
    if (isNarrow !== this.isNarrow || !this.box.style.getPropertyValue("--columns")) this.drawAgain();
    else this.draw();
  }

  refreshTimes() {
    for (const { element, row } of this.drawn.values()) {
      const time = row && element.querySelector(".row-time");
      if (time) time.textContent = ago(row.received_at);
    }
  }

  // Scrolling

  onScroll() {
    if (this.box.scrollTop < this.rowHeight / 2) {
      this.isScrolledByUser = false;
      if (!this.records.sort) this.setUnseen(0);
    }
    this.columns.head.scrollLeft = this.box.scrollLeft;
    this.draw();
  }

  onUserScroll() {
    this.isScrolledByUser = true;
    this.anchor = null;
    this.wanted = null;
  }

  /** Keeps the top row in place after a reload with `added` new rows. */
  keepPlace(added) {
    if (this.box.scrollTop >= this.rowHeight / 2) this.keepRows();
    if (this.anchor) this.setUnseen(this.unseen + added);
  }

  /** Keeps the rows in place when they are drawn next: the first visible one that is still in the list. */
  keepRows() {
    const index = Math.floor(this.box.scrollTop / this.rowHeight);
    const top = [...this.drawn.values()].filter((one) => one.row && one.index >= index && this.records.indexOf(one.row.seq) >= 0)
      .reduce((one, other) => (one === null || other.index < one.index ? other : one), null);
    this.anchor = top && { seq: top.row.seq, offset: this.box.scrollTop - top.index * this.rowHeight };
  }

  findPlace() {
    const index = this.anchor ? this.records.indexOf(this.anchor.seq) : -1;
    if (index < 0) return;
    this.box.scrollTop = index * this.rowHeight + this.anchor.offset;
    this.anchor = null;
  }

  /** Scrolls to the push of a link once its place in the list is known. */
  findWanted() {
    if (this.wanted === null || this.records.indexOf(this.wanted) < 0) return;
    const seq = this.wanted;
    this.wanted = null;
    // It was not selected while its place was not known.
    if (seq === this.opened) this.select(seq);
    this.reveal(seq);
  }

  /** Scrolls back to the newest rows when the pointer leaves, unless the user has scrolled. */
  onLeave() {
    this.isOver = false;
    if (!this.isScrolledByUser && this.unseen && !this.records.sort) this.toTop();
  }

  /** Keeps the visible rows in place after `added` rows at the top. */
  grew(added) {
    if (this.records.sort) {
      this.setUnseen(this.records.unlisted.size);
      return this.draw();
    }
    const wasAtTop = this.box.scrollTop < this.rowHeight / 2;
    if ((added || this.records.isGrouped) && (!wasAtTop || this.isOver)) {
      this.keepRows();
      this.setUnseen(this.unseen + added);
      return this.drawNow(); // Draws immediately, so that rows and scroll position change together.
    }
    return this.draw();
  }

  /** Shows the number of new pushes outside of the view. While the page is paused, the bar shows it. */
  setUnseen(number) {
    this.unseen = number;
    this.pill.hidden = number === 0 || this.isPaused === true;
    this.pill.textContent = this.records.sort ? `${count(number)} new, sort again` : `↑ ${count(number)} new`;
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
    const condition = event.target.closest("[data-term]")?.dataset.term;
    const seq = seqOf(event.target.closest(".row")?.dataset.seq);
    this.box.focus({ preventScroll: true });
    if (!seq) return;
    if (event.shiftKey) this.selection.extend(seq);
    else if (event.ctrlKey || event.metaKey || this.isTapSelecting) this.selection.toggle(seq);
    else if (condition && event.altKey) this.callbacks.search(condition);
    else {
      this.selection.set(seq);
      this.callbacks.open(seq);
    }
  }

  onKey(event) {
    if (event.key.toLowerCase() === "a" && (event.ctrlKey || event.metaKey) && !event.altKey) {
      event.preventDefault();
      this.selection.all();
    } else if (event.shiftKey && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      event.preventDefault();
      const seq = this.adjacent(event.key === "ArrowDown" ? 1 : -1);
      if (seq === null) return;
      this.selection.extend(seq);
      this.reveal(seq);
    } else {
      const page = Math.max(1, Math.floor(this.box.clientHeight / this.rowHeight) - 1);
      const step = { PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity }[event.key];
      if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      const seq = this.adjacent(step);
      if (seq === null) return;
      if (event.shiftKey) this.selection.extend(seq); else this.selection.move(seq);
      this.reveal(seq);
    }
  }

  /** Makes a push the current one without opening it. */
  select(seq) {
    if (seq !== this.selection.current || (this.selection.size > 1 && !this.selection.isMarking)) this.selection.move(seq);
  }

  /** Marks the push that is open. */
  setOpened(seq) {
    this.opened = seq;
    this.markSelected();
  }

  markSelected() {
    const { current } = this.selection;
    for (const { element, row } of this.drawn.values()) {
      const seq = row?.seq ?? null;
      element.setAttribute("aria-selected", String(seq !== null && this.selection.has(seq)));
      element.classList.toggle("is-current", seq !== null && seq === current);
      if (seq !== null && (seq === this.opened || this.attempts?.get(seq)?.some((one) => one.seq === this.opened))) element.setAttribute("aria-current", "true");
      else element.removeAttribute("aria-current");
    }
    if (current !== null && this.drawn.get(current)?.row) this.box.setAttribute("aria-activedescendant", `push-${current}`);
    else this.box.removeAttribute("aria-activedescendant");
  }

  /** The seq `step` rows after the selected one, or at the end; null in an empty list. */
  adjacent(step) {
    const length = this.records.length;
    if (!length) return null;
    const here = this.selected === null ? -1 : this.records.indexOf(this.selected);
    const index = here < 0 ? Math.max(0, Math.floor(this.box.scrollTop / this.rowHeight)) : here + step;
    return this.records.seqAt(Math.max(0, Math.min(length - 1, index)));
  }

  /** Scrolls a push into view. */
  reveal(seq) {
    const index = this.records.indexOf(seq);
    if (index < 0) return;
    const top = index * this.rowHeight;
    this.setHeight();
    if (top < this.box.scrollTop) this.box.scrollTop = top;
    else if (top + this.rowHeight > this.box.scrollTop + this.box.clientHeight) {
      this.box.scrollTop = top + this.rowHeight - this.box.clientHeight;
    }
    this.isScrolledByUser = this.box.scrollTop > this.rowHeight / 2;
    this.draw();
  }

  /** Scrolls a push into view, now or when its place is known. */
  revealWhenKnown(seq) {
    this.wanted = isSeq(seq) ? seq : null;
    this.draw();
  }
}
