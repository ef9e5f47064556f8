// What is counted of the pushes, for all views at the same moment and with the same search: that of the list.
import { get } from "./api.js";
import { oneAtATime } from "./dom.js";
import { count } from "./format.js";
import { filterOf } from "./terms.js";

/** In a larger inbox only the newest pushes are counted, because it takes minutes to read all of them from a database. */
const NEWEST = 100_000;
const BUCKETS = { buckets: 90 };
// The milliseconds between two counts. Counting a large inbox takes longer, so it is counted less often.
const [SHORT_REST, LONG_REST] = [600, 5000];

/**
 * `q`: the search of the list. `invalid`: the error of a search that the list cannot have; `failure`: that of the newest count; `problem`: one of
 * them. `counts`: null before the first count, then `{q, all, found, findings, findingsProblem, withFindings, part}`: the search, the statistics
 * of all pushes and of those that match, the findings or why they are not counted, the number of pushes with findings, and what is counted of a
 * large inbox, for people.
 */
export const snapshot = { q: "", invalid: null, failure: null, counts: null, get problem() { return this.invalid ?? this.failure; } };
const observers = [];
let waiting = []; // for the next change
let wake = () => {}; // ends the rest after a count
let isUrgent = false; // whether the next count begins without a rest
let isPaused = false;
let newestCounted = 0;
let limit = Infinity; // the newest push that is counted

/** Registers a callback for each change. */
export function onSnapshot(callback) {
  observers.push(callback);
}

/** Returns a promise of the next change. */
export function nextSnapshot() {
  return new Promise((resolve) => waiting.push(resolve));
}

/** Notes the search of the list, or why there is no other one, and counts what it finds. */
export function setSearch(q, invalid = null) {
  const isNew = q !== snapshot.q;
  const isChanged = isNew || invalid !== snapshot.invalid;
  Object.assign(snapshot, { q, invalid, failure: isNew ? null : snapshot.failure });
  if (isChanged) notify();
  // During a pause the list is loaded with what has arrived since.
  if (isNew || (isPaused && invalid === null)) recountNow(); else recount();
}

/** Keeps the counts while the page is paused. They are those of the beginning of the pause, at which `newest` is the newest push of the list. */
export function setPaused(paused, newest) {
  isPaused = paused;
  if (paused) return recountNow(Math.max(newestCounted, newest));
  limit = Infinity;
  return recount();
}

/**
 * Counts anew at once, also during a pause, because what is shown is wrong: there is another search, or pushes were deleted. Pushes after `newest`
 * are not counted.
 */
export function recountNow(newest = Infinity) {
  limit = newest;
  isUrgent = true;
  wake();
  recount();
}

function notify() {
  for (const callback of observers) callback();
  for (const resolve of waiting.splice(0)) resolve();
}

/** Counts anew. Returns a promise of the end. */
export const recount = oneAtATime(async () => {
  if (document.hidden || (isPaused && !isUrgent && snapshot.counts?.q === snapshot.q && !snapshot.failure)) return;
  isUrgent = false;
  const began = performance.now();
  const { q } = snapshot;
  try {
    const counted = await countNow(q);
    if (q !== snapshot.q) return; // The new search is counted next.
    Object.assign(snapshot, counted);
  } catch (error) {
    if (q !== snapshot.q) return;
    snapshot.failure = error;
  }
  notify();
  if (!isUrgent) await new Promise((resolve) => {
    wake = resolve;
    setTimeout(resolve, Math.min(LONG_REST, Math.max(SHORT_REST, (performance.now() - began) * 8)));
  });
});

// A page that is not visible counts nothing.
addEventListener("visibilitychange", () => document.hidden || recount());

/** Returns the counts, and the error of those of the search. */
async function countNow(q) {
  const { inbox } = await get("/status");
  const limits = {};
  // In a view of several servers no number is the newest one.
  if (typeof inbox.last_seq === "number") {
    newestCounted = Math.min(inbox.last_seq, limit);
    limits.before = newestCounted + 1;
    if (inbox.records > NEWEST) limits.after = Math.max(0, newestCounted - NEWEST);
  }
  const [all, found, findings, pushes] = await Promise.allSettled([
    get("/stats", { ...limits, ...BUCKETS }), q ? get("/stats", { ...filterOf(q), ...limits, ...BUCKETS }) : null,
    get("/findings", { ...limits, ...BUCKETS }), get("/pushes", { q: "finding:*", limit: 0, ...limits }),
  ]);
  const known = all.value ?? snapshot.counts?.all;
  if (known === undefined) throw all.reason;
  return { failure: (q ? found : all).reason ?? null, counts: {
    q, all: known, found: q ? found.value ?? null : known, findings: findings.value ?? null, findingsProblem: findings.reason ?? null,
    withFindings: pushes.value?.matched, part: limits.after ? `pushes from #${count(limits.after + 1)} on` : null,
  } };
}
