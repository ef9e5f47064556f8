// Formats times, sizes and tokens.
import { serverNow } from "./clock.js";

const KIB = 1024;

/** A number of bytes: `812 B`, `4.0 KiB`. */
export function size(bytes) {
  if (bytes < 10 * KIB) return `${count(bytes)} B`;
  return bytes < KIB * KIB ? `${(bytes / KIB).toFixed(1)} KiB` : `${(bytes / KIB / KIB).toFixed(1)} MiB`;
}

/** A number with non-breaking thin spaces between thousands. */
export function count(number) {
  return String(number).replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");
}

/** A number of pushes: `1 push`, `1 204 pushes`. */
export function pushes(number) {
  return counted(number, "push", "pushes");
}

/** A number of things: `1 rule`, `2 rules`. */
export function counted(number, one, many = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : many}`;
}

/** The number of a push: in a view of several servers that of its server, such as `#load_1:4711`. */
export function numberOf(push) {
  return `#${push.seq}`;
}

/** A shortened hexadecimal string: `ab12…9f3e`. */
export function tail(token) {
  if (!token) return "";
  return token.length > 12 ? `${token.slice(0, 4)}…${token.slice(-4)}` : token;
}

/** The local time of day with milliseconds. */
export function clockTime(text) {
  const date = new Date(text);
  if (Number.isNaN(date.getTime())) return "";
  const two = (number) => String(number).padStart(2, "0");
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`
    + `.${String(date.getMilliseconds()).padStart(3, "0")}`;
}

/** The local time of day with milliseconds, after the date if that is not today by the server's clock. */
export function dayTime(text, now = serverNow()) {
  const date = new Date(text);
  if (Number.isNaN(date.getTime()) || date.toDateString() === new Date(now).toDateString()) return clockTime(text);
  const year = date.getFullYear() === new Date(now).getFullYear() ? {} : { year: "numeric" };
  return `${date.toLocaleDateString("en-GB", { day: "numeric", month: "short", ...year })} ${clockTime(text)}`;
}

/**
 * The time since `text` by the server's clock: `now`, `12 s`, `3 min`, `2 h`, then the date. For a later time, which a clock
 * that was moved back makes possible, the time of day.
 */
export function ago(text, now = serverNow()) {
  const seconds = Math.round((now - Date.parse(text)) / 1000);
  if (Number.isNaN(seconds)) return "";
  if (seconds < -2) return clockTime(text).slice(0, 8);
  if (seconds < 3) return "now";
  return seconds < 86400 ? span(seconds) : new Date(text).toLocaleDateString("en-GB", { day: "numeric", month: "short" });
}

let start = NaN;

/** Sets the time of the first push, from which `sinceStart` counts. */
export function setStart(text) {
  start = Date.parse(text ?? "");
}

/** The time since the first push: `+1.204 s`, `+3:07.2`. */
export function sinceStart(text) {
  const ms = Date.parse(text) - start;
  if (Number.isNaN(ms)) return "";
  const sign = ms < 0 ? "−" : "+";
  const seconds = Math.abs(ms) / 1000;
  if (seconds < 60) return `${sign}${seconds.toFixed(3)} s`;
  const minutes = Math.floor(seconds / 60);
  const rest = (seconds % 60).toFixed(1).padStart(4, "0");
  return minutes < 60 ? `${sign}${minutes}:${rest}` : `${sign}${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, "0")}:${rest.slice(0, 2)}`;
}

/** The relative time: `12 s ago`, `in 5 min`. */
export function agoWords(text) {
  const ahead = Math.round((Date.parse(text) - serverNow()) / 1000);
  if (ahead > 2) return `in ${span(ahead)}`;
  const short = ago(text);
  return /^\d+ (s|min|h)$/.test(short) ? `${short} ago` : short;
}

function span(seconds) {
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} d`;
}

/** The full date and time with the time zone. */
export function fullTime(text) {
  const date = new Date(text);
  return Number.isNaN(date.getTime()) ? String(text)
    : date.toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "medium" }) + ` (${text})`;
}

/** A time in seconds since 1970, as in payloads; null if it is invalid. */
export function fromSeconds(value) {
  if (typeof value !== "number" || !Number.isFinite(value) || Math.abs(value) > 8.64e12) return null;
  return new Date(value * 1000).toISOString();
}

/** The milliseconds of a duration of the API such as `1m3s` or `538.87us`; null if it is invalid. */
export function milliseconds(text) {
  const units = { us: 0.001, "µs": 0.001, ns: 1e-6, ms: 1, s: 1000, m: 60000, h: 3600000 };
  let total = 0;
  let rest = String(text ?? "");
  const negative = rest.startsWith("-");
  if (negative) rest = rest.slice(1);
  if (!rest) return null;
  while (rest) {
    const part = /^(\d+(?:\.\d+)?)(us|µs|ns|ms|s|m|h)/.exec(rest);
    if (!part) return null;
    total += Number(part[1]) * units[part[2]];
    rest = rest.slice(part[0].length);
  }
  return negative ? -total : total;
}

/** A short duration: `0.54 ms`, `1.2 s`; empty without a number of milliseconds. */
export function latency(ms) {
  if (typeof ms !== "number") return "";
  if (ms < 10) return `${ms.toFixed(2)} ms`;
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}
