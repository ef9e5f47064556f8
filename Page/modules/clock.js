// The server's clock, which can be moved or frozen. Relative times use it, because records have its times.
import { get } from "./api.js";

let offset = 0;
let frozenAt = null;

/** The milliseconds since 1970 by the server's clock. */
export function serverNow() {
  return frozenAt ?? Date.now() + offset;
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
