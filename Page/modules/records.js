// The pushes that match the search, newest first: all seq numbers, and the row data of those near the visible part.
import { get } from "./api.js";

/** The fields of a push that a row shows. */
export const ROW_FIELDS = [
  "seq", "outcome", "accepted", "attempt", "push_key", "received_at", "connection.id", "request.payload",
  "request.device_token", "request.size", "apns.topic", "apns.push_type", "served", "fault.rule", "findings",
].join(",");
const FIRST_PAGE = 100;
const INDEX_PAGE = 1000;
const KEPT_ROWS = 3000;

export class Records {
  /** @param onChange called after each change. */
  constructor(onChange) {
    this.onChange = onChange;
    this.clear();
  }

  clear() {
    this.fetching?.abort();
    this.arrivedDuringLoad = null;
    this.q = "";
    // Seq numbers: `older` as loaded, newest first; `newer` as received since, oldest first.
    this.older = [];
    this.newer = [];
    this.expected = 0;
    this.rows = new Map();
    this.missing = new Set();
    this.total = 0;
    this.evicted = 0;
  }

  /** The number of pushes, including those whose seq is not known yet. */
  get length() {
    return this.newer.length + Math.max(this.expected, this.older.length);
  }

  seqAt(index) {
    if (index < this.newer.length) return this.newer[this.newer.length - 1 - index];
    return this.older[index - this.newer.length] ?? null;
  }

  /** The index of a push; -1 if unknown. */
  indexOf(seq) {
    const inNewer = this.newer.lastIndexOf(seq);
    if (inNewer >= 0) return this.newer.length - 1 - inNewer;
    let [low, high] = [0, this.older.length - 1];
    while (low <= high) {
      const middle = (low + high) >> 1;
      if (this.older[middle] === seq) return this.newer.length + middle;
      if (this.older[middle] > seq) low = middle + 1; else high = middle - 1;
    }
    return -1;
  }

  /** The number of pushes after a push. */
  countAfter(seq) {
    let number = 0;
    while ((this.seqAt(number) ?? 0) > seq) number += 1;
    return number;
  }

  row(seq) {
    return this.rows.get(seq) ?? null;
  }

  /** Loads the pushes that match `q`. Throws `ApiError` for an invalid query. */
  async load(q) {
    this.loading?.abort();
    const { signal } = (this.loading = new AbortController());
    // Pushes that arrive over the stream during the request.
    this.arrivedDuringLoad = [];
    const filter = q ? { q } : {};
    const page = await get("/pushes", { ...filter, order: "desc", limit: FIRST_PAGE, fields: ROW_FIELDS }, { signal });
    const arrivedDuringLoad = this.arrivedDuringLoad;
    this.clear();
    this.q = q;
    for (const item of page.items) {
      this.older.push(item.seq);
      this.keep(item);
    }
    this.expected = page.matched;
    this.total = page.total;
    this.evicted = page.evicted;
    for (const record of arrivedDuringLoad) this.add(record);
    this.onChange();
    if (page.matched > page.items.length) this.index(filter, signal).catch(() => {});
  }

  /** Loads the seq numbers of all other pushes, unless they are contiguous. */
  async index(filter, signal) {
    const oldest = await get("/pushes", { ...filter, order: "asc", limit: 1, fields: "seq" }, { signal });
    const first = oldest.items[0]?.seq ?? 0;
    const newest = this.older[0];
    if (newest - first + 1 === this.expected) {
      for (let seq = this.older.at(-1) - 1; seq >= first; seq -= 1) this.older.push(seq);
      return this.onChange();
    }
    while (this.older.length < this.expected) {
      const before = this.older.at(-1);
      const page = await get("/pushes", { ...filter, order: "desc", limit: INDEX_PAGE, before, fields: "seq" }, { signal });
      if (!page.items.length) break;
      for (const item of page.items) this.older.push(item.seq);
      this.onChange();
    }
    this.expected = this.older.length;
    this.onChange();
  }

  /** Loads the rows from `first` to `last` and some around them. */
  async want(first, last) {
    const seqs = [];
    for (let index = first; index <= last; index += 1) {
      const seq = this.seqAt(index);
      if (seq !== null && !this.rows.has(seq) && !this.missing.has(seq)) seqs.push(seq);
    }
    if (!seqs.length) return;
    this.fetching?.abort();
    this.fetching = new AbortController();
    const query = {
      ...(this.q ? { q: this.q } : {}), order: "desc", limit: Math.min(1000, last - first + 1),
      before: seqs[0] + 1, after: Math.max(0, seqs.at(-1) - 1), fields: ROW_FIELDS,
    };
    let page;
    try {
      page = await get("/pushes", query, { signal: this.fetching.signal });
    } catch {
      return; // The next draw of the list retries.
    }
    for (const item of page.items) this.keep(item);
    for (const seq of seqs) if (!this.rows.has(seq)) this.missing.add(seq);
    this.onChange();
  }

  keep(row) {
    this.rows.delete(row.seq);
    this.rows.set(row.seq, row);
    if (this.rows.size <= KEPT_ROWS) return;
    for (const seq of this.rows.keys()) {
      this.rows.delete(seq);
      if (this.rows.size <= KEPT_ROWS * 0.8) break;
    }
  }

  /** Adds or updates a push. Returns whether it is new. */
  add(record) {
    if (this.arrivedDuringLoad) {
      this.arrivedDuringLoad.push(record);
      return false;
    }
    this.missing.delete(record.seq);
    const isNew = this.indexOf(record.seq) < 0 && record.seq > (this.older[0] ?? 0);
    if (isNew) {
      let index = this.newer.length;
      while (index > 0 && this.newer[index - 1] > record.seq) index -= 1;
      this.newer.splice(index, 0, record.seq);
    }
    if (isNew || this.rows.has(record.seq)) this.keep(record);
    return isNew;
  }
}
