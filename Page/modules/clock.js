// The server's clock, which can be moved or frozen. Relative times use it, because records have its times.
import { get } from "./api.js";

let offset = 0;
let frozenAt = null;

/** The milliseconds since 1970 by the server's clock. */
export function serverNow() {
  return frozenAt ?? Date.now() + offset;
}

/** How far the clock is from the machine's: `+26 h`, `−3 d`; empty for the real time. */
export function offsetText({ mode, offset_ms: ms }) {
  // A clock that runs is within a second of the machine's unless it was moved.
  if (Math.abs(ms) < 1000 && mode !== "frozen") return "";
  const seconds = Math.round(Math.abs(ms) / 1000);
  const [unit, length] = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]].find(([name, long]) => seconds >= (name === "d" ? 3 : 2) * long || name === "s");
  return `${ms < 0 ? "−" : "+"}${Math.round(seconds / length)} ${unit}`;
}

/** What a clock that was moved too far does to provider tokens; empty for another one. */
export function tokenWarning(clock) {
  return clock.rejects_new_tokens
    ? "A provider that signs a token now gets 403 ExpiredProviderToken until the clock shows the real time. To test the renewal of tokens, use the profile expired-jwt-403 instead."
    : "";
}

/** Reads the clock; returns the response of the API. */
export async function readClock() {
  const clock = await get("/clock");
  const now = Date.parse(clock.now);
  frozenAt = clock.mode === "frozen" ? now : null;
  offset = now - Date.now();
  return clock;
}
