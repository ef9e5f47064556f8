// Requests the first rows of the list before the other modules are loaded: on a slow network they would arrive much later.

/** The fields of a push that a row shows. */
export const ROW_FIELDS = [
  "seq", "outcome", "accepted", "attempt", "push_key", "received_at", "connection.id", "request.payload",
  "request.device_token", "request.size", "apns.id", "apns.topic", "apns.push_type", "apns.priority", "apns.collapse_id",
  "served", "fault.rule", "findings",
].join(",");
/** The time of a request for a part of a long search, after which the page shows how far it is. */
export const WITHIN = "2s";
/** The parameters of the first rows, without those of a search. 32 are what a screen has; on a slow network, more would be late. */
export const FIRST_ROWS = { order: "desc", fields: ROW_FIELDS, within: WITHIN, limit: 32 };

/** Whether the list has rows that were requested before the events were followed, so that it may lack a push. */
export const early = { isUsed: false };

/** Returns the promise of the response to a request if it was sent early; null if not. */
export function takeEarly(url) {
  const request = globalThis.earlyRequest;
  if (request?.url !== url) return null;
  globalThis.earlyRequest = null;
  early.isUsed = true;
  return request.response;
}

// A report, which has no server, has no such script.
if (document.querySelector("script[src*='early.js']") && globalThis.earlyRequest === undefined && !/[?&](q|fold|sort)=/.test(location.search)) {
  const url = `/api/v1/pushes?${new URLSearchParams(FIRST_ROWS)}`;
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  globalThis.earlyRequest = { url, response: fetch(url, { cache: "no-store", headers: token === null ? {} : { authorization: `Bearer ${token}` } }) };
  globalThis.earlyRequest.response.catch(() => {}); // Reported by who takes it.
}
