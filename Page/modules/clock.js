// The server's clock, which can be moved or frozen. Relative times use it, because records have its times.
import { get } from "./api.js";

let offset = 0;
let frozenAt = null;

/** The milliseconds since 1970 by the server's clock. */
export function serverNow() {
  return frozenAt ?? Date.now() + offset;
}

/** Reads the clock; returns the response of the API. */
export async function readClock() {
  const clock = await get("/clock");
  const now = Date.parse(clock.now);
  frozenAt = clock.mode === "frozen" ? now : null;
  offset = now - Date.now();
  return clock;
}
