// In a large inbox only the newest pushes are counted, because it takes minutes to read all of them from a database.
import { get } from "./api.js";
import { count } from "./format.js";

const NEWEST = 100_000;

/** The parameters of a request that counts pushes: empty if there are so few that all are counted. */
export async function newest(options) {
  const { inbox } = await get("/status", {}, options);
  return inbox.records > NEWEST ? { after: Math.max(0, inbox.last_seq - NEWEST) } : {};
}

/** What such a request counts, for people; null for everything. */
export function counted({ after }) {
  return after ? `pushes from #${count(after + 1)} on` : null;
}
