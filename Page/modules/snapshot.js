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
 * `q`: the search of the list. `problem`: the error of a search that is invalid, or of a request. `counts`: null before the first count, then
 * `{q, all, found, findings, withFindings, part}`: the search, the statistics of all pushes and of those that match, the findings, the
 * number of pushes with findings, and what is counted of a large inbox, for people.
 */
export const snapshot = { q: "", problem: null, counts: null };
const observers = [];
let wake = () => {};

/** Registers a callback for each change. */
export function onSnapshot(callback) {
  observers.push(callback);
}

/** Notes the search of the list, or why there is none, and counts what it finds. */
export function setSearch(q, problem = null) {
  const isNew = q !== snapshot.q || problem !== snapshot.problem;
  Object.assign(snapshot, { q, problem });
  if (isNew) notify();
  wake();
  recount();
}

function notify() {
  for (const callback of observers) callback();
}

/** Counts anew. Returns a promise of the end. */
export const recount = oneAtATime(async () => {
  if (document.hidden) return;
  const began = performance.now();
  const { q } = snapshot;
  try {
    const counts = await countNow(q);
    if (q !== snapshot.q) return;
    snapshot.counts = counts;
    if (snapshot.problem?.status !== 400) snapshot.problem = null;
  } catch (error) {
    snapshot.problem ??= error;
  }
  notify();
  await new Promise((resolve) => {
    wake = resolve;
    setTimeout(resolve, Math.min(LONG_REST, Math.max(SHORT_REST, (performance.now() - began) * 8)));
  });
});

async function countNow(q) {
  const { inbox } = await get("/status");
  const limits = {};
  // In a view of several servers no number is the newest one.
  if (typeof inbox.last_seq === "number") limits.before = inbox.last_seq + 1;
  if (limits.before && inbox.records > NEWEST) limits.after = Math.max(0, inbox.last_seq - NEWEST);
  const [all, found, findings, { matched }] = await Promise.all([
    get("/stats", { ...limits, ...BUCKETS }), q ? get("/stats", { ...filterOf(q), ...limits, ...BUCKETS }) : null,
    get("/findings", { ...limits, ...BUCKETS }), get("/pushes", { q: "finding:*", limit: 0, ...limits }),
  ]);
  return { q, all, found: found ?? all, findings, withFindings: matched, part: limits.after ? `pushes from #${count(limits.after + 1)} on` : null };
}
