// A stacked column chart of counts over time, on which a range of time can be selected by dragging or by keys.
import { h, replace, svg } from "../dom.js";
import { count } from "../format.js";
import { axisTime, span } from "./scale.js";
import { largest, occurring, stack } from "./stack.js";

const HEIGHT = 132;
const LAST_TIME = Date.UTC(9999, 11, 31, 23, 59, 59, 999); // of RFC 3339

export class TimeChart {
  /** `onSelect(from, until)` gets the selected range in milliseconds since 1970; `until` is not included. */
  constructor({ label, onSelect }) {
    this.onSelect = onSelect;
    this.label = label;
    this.counts = {}; // for each outcome a list
    this.length = 0; // the number of columns
    this.range = null; // the indices of the first and last selected bucket
    this.canvas = svg("svg", { class: "chart-canvas", height: HEIGHT, preserveAspectRatio: "none", "aria-hidden": "true" });
    this.area = h("div", {
      class: "chart-area", tabindex: "0", role: "slider", "aria-label": label, "aria-orientation": "horizontal", "aria-valuenow": "0",
      on: {
        pointerdown: (event) => this.begin(event), pointermove: (event) => this.drag(event), pointerup: (event) => this.end(event),
        pointercancel: () => this.cancel(), pointerleave: () => !this.isDragging && this.describe(this.range), keydown: (event) => this.onKey(event),
      },
    }, this.canvas);
    this.caption = h("p", { class: "chart-caption quiet" });
    this.axis = h("div", { class: "chart-axis quiet", "aria-hidden": "true" });
    this.element = h("div", { class: "chart" }, this.area, this.axis, this.caption);
  }

  /** Draws a time line of the API. */
  draw({ start, bucket_ms: width, counts }) {
    // The selected range refers to the drawn buckets.
    if (this.isDragging || (this.range && document.activeElement === this.area)) return;
    this.start = Date.parse(start);
    this.width = width;
    this.counts = counts;
    this.length = Math.max(0, ...Object.values(counts).map((list) => list.length));
    this.range = null;
    this.render();
  }

  render() {
    const number = Math.max(1, this.length);
    const highest = largest(this.counts);
    this.canvas.setAttribute("viewBox", `0 0 ${number * 10} ${HEIGHT}`);
    const columns = stack(this.counts, { left: (index) => index * 10 + 1, width: 8, highest: HEIGHT - 14, bottom: HEIGHT });
    const [first, last] = this.range ?? [0, -1];
    replace(this.canvas, this.range && svg("rect", { class: "chart-range", x: first * 10, y: 0, width: (last - first + 1) * 10, height: HEIGHT }), columns);
    replace(this.axis, this.length > 0 && [h("span", {}, this.time(this.start)), h("span", {}, `highest: ${count(highest)} in ${span(this.width)}`),
      h("span", {}, this.time(this.timeOf(this.length)))]);
    this.area.setAttribute("aria-valuemin", "0");
    this.area.setAttribute("aria-valuemax", String(number - 1));
    this.area.setAttribute("aria-valuenow", String(this.range?.[1] ?? 0));
    this.describe(this.range);
  }

  timeOf(index) { return this.start + index * this.width; }

  time(at) {
    return axisTime(at, this.length * this.width);
  }

  /** Shows the counts of a range of buckets; of all without one. */
  describe(range) {
    const [first, last] = range ?? [0, this.length - 1];
    const parts = occurring(this.counts).map((name) => {
      const sum = this.counts[name].slice(first, last + 1).reduce((total, number) => total + number, 0);
      return sum ? [h("span", { class: `is-${name} word` }, `${count(sum)} ${name}`), " "] : null;
    });
    const hint = !range ? "Drag to select a time, or use the arrow keys." : document.activeElement === this.area && this.range ? "Enter shows these pushes." : "Click to show these pushes.";
    replace(this.caption, range && h("span", {}, `${this.time(this.timeOf(first))}, ${span((last - first + 1) * this.width)}: `), parts, h("span", {}, hint));
    this.area.setAttribute("aria-valuetext", this.caption.textContent || "no pushes");
  }

  indexAt(event) {
    const box = this.area.getBoundingClientRect();
    return Math.min(this.length - 1, Math.max(0, Math.floor(((event.clientX - box.left) / box.width) * this.length)));
  }

  begin(event) {
    if (!this.length || event.button !== 0) return;
    this.area.setPointerCapture(event.pointerId);
    this.dragged = this.indexAt(event);
    this.isDragging = true;
    this.select([this.dragged, this.dragged]);
  }

  drag(event) {
    if (!this.length) return;
    const index = this.indexAt(event);
    if (!this.isDragging) return this.describe([index, index]);
    this.select([Math.min(this.dragged, index), Math.max(this.dragged, index)]);
  }

  end() {
    if (!this.isDragging) return;
    this.isDragging = false;
    this.dragged = null;
    this.apply();
  }

  cancel() {
    this.isDragging = false;
    this.select(null);
  }

  select(range) {
    this.range = range;
    this.render();
  }

  apply() {
    if (!this.range) return;
    const [first, last] = this.range;
    this.range = null;
    this.onSelect(this.timeOf(first), Math.min(this.timeOf(last + 1), LAST_TIME));
  }

  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !this.length) return;
    const end = this.length - 1;
    const [first, last] = this.range ?? [end + 1, end];
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step && event.shiftKey && this.range) this.select([first, Math.min(end, Math.max(first, last + step))]);
    else if (step) this.select(Array(2).fill(Math.min(end, Math.max(0, (step < 0 ? first : last) + step))));
    else if (event.key === "Enter") this.apply();
    else if (event.key === "Escape" && this.range) this.select(null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
