// In a large inbox only the newest pushes are counted, because it takes minutes to read all of them from a database.
import { get } from "./api.js";
import { count } from "./format.js";

const NEWEST = 100_000;

/** The parameters of requests that count the same pushes: up to the newest of now, of a large inbox only the newest. */
export async function newest(options) {
  const { inbox } = await get("/status", {}, options);
  // In a view of several servers no number is the newest one.
  if (typeof inbox.last_seq !== "number") return {};
  const before = inbox.last_seq + 1;
  return inbox.records > NEWEST ? { before, after: Math.max(0, inbox.last_seq - NEWEST) } : { before };
}

/** What such a request counts, for people; null for everything. */
export function counted({ after }) {
  return after ? `pushes from #${count(after + 1)} on` : null;
}
