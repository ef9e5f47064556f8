// Times on an axis: lengths in words, and the ticks of a time window.
import { clockTime } from "../format.js";

const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 15000, 30000, 60000, 120000, 300000, 600000, 900000, 1800000,
  3600000, 7200000, 14400000, 21600000, 43200000, 86400000];

/** A length of time: `5 ms`, `1.5 s`, `3 min`. */
export function span(ms) {
  const text = (value) => String(Math.round(value * 10) / 10);
  if (ms < 1000) return `${text(ms)} ms`;
  if (ms < 60000) return `${text(ms / 1000)} s`;
  if (ms < 3600000) return `${text(ms / 60000)} min`;
  return ms < 86400000 ? `${text(ms / 3600000)} h` : `${text(ms / 86400000)} d`;
}

/** A time on an axis of this length in milliseconds: as exact as neighbouring labels need to differ. */
export function axisTime(time, length) {
  const text = clockTime(time);
  if (length < 60000) return text;
  if (length < 86400000) return text.slice(0, -4);
  return `${new Date(time).toLocaleDateString("en-GB", { day: "numeric", month: "short" })} ${text.slice(0, 5)}`;
}

/** The times at which an axis of `width` pixels has labels, as `{time, text}`. */
export function ticks(from, until, width, minDistance = 92) {
  const wanted = ((until - from) / Math.max(1, width)) * minDistance;
  const step = STEPS.find((one) => one >= wanted) ?? Math.ceil(wanted / 86400000) * 86400000;
  const list = [];
  for (let time = Math.ceil(from / step) * step; time < until; time += step) {
    list.push({ time, text: step < 1000 ? clockTime(time) : axisTime(time, Math.max(60000, until - from)) });
  }
  return list;
}
