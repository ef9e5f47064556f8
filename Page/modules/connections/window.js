// The visible part of a time line: its limits, and how it is zoomed and moved.

const SHORTEST = 10; // milliseconds

export class TimeWindow {
  /** @param onChange called after each change of the window. */
  constructor(onChange) {
    this.onChange = onChange;
    this.all = [0, SHORTEST];
    [this.from, this.until] = this.all;
    this.followsAll = true; // whether the window grows with the time line
  }

  get length() { return this.until - this.from; }

  /** Sets the limits of the time line. */
  setLimits(from, until) {
    this.all = [from, Math.max(until, from + SHORTEST)];
    if (this.followsAll) [this.from, this.until] = this.all;
  }

  showAll() {
    this.followsAll = true;
    [this.from, this.until] = this.all;
    this.onChange();
  }

  show(from, until) {
    const middle = (from + until) / 2;
    const length = Math.max(SHORTEST, Math.min(until - from, this.all[1] - this.all[0]));
    const start = Math.min(this.all[1] - length, Math.max(this.all[0], middle - length / 2));
    this.followsAll = length >= this.all[1] - this.all[0];
    [this.from, this.until] = [Math.floor(start), Math.ceil(start + length)];
    this.onChange();
  }

  /** Shortens the window by `factor`; `share` is the point that keeps its place, from 0 to 1. */
  zoom(factor, share = 0.5) {
    const length = Math.max(SHORTEST, this.length / factor);
    const from = this.from + (this.length - length) * share;
    this.show(from, from + length);
  }

  /** Moves the window by a share of its length. */
  move(share) {
    const step = this.length * share;
    this.show(this.from + step, this.until + step);
  }

  /** The position of a time in pixels. */
  at(time, width) { return ((time - this.from) / this.length) * width; }

  timeAt(position, width) { return this.from + (position / width) * this.length; }
}
