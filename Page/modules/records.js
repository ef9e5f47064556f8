// The pushes that match the search: the seq numbers of all, and the row data of those near the visible part.
import { get, urlParts } from "./api.js";
import { seriesOf, SERIES_FIELDS } from "./attempts.js";
import { FIRST_ROWS, ROW_FIELDS, WITHIN } from "./early.js";
import { isNamed, isSeq } from "./seq.js";
import { filterOf } from "./terms.js";

/** The number of pushes that are loaded at once in a list of unknown length. */
const PART = 1000;
const KEPT_ROWS = 3000;
/** The number of pushes whose attempts are requested at once. */
export const MAX_KEYS = 60;
/** The largest inbox whose matches are counted although they are not loaded. */
const MAX_COUNTED = 1_000_000;

/** The parameter `seqs` of the API: `4,7-9`, or `load_1:4,load_2:7`. Several texts if one would be too long for a URL. */
export function seqRanges(seqs) {
  if (isNamed([...seqs][0])) return urlParts([...seqs]);
  const ranges = [];
  for (const seq of [...seqs].sort((one, other) => one - other)) {
    const last = ranges.at(-1);
    if (last && last[1] === seq - 1) last[1] = seq; else ranges.push([seq, seq]);
  }
  const texts = ranges.map(([first, last]) => (first === last ? String(first) : `${first}-${last}`));
  return urlParts(texts);
}

export class Records {
  /** `onChange()` is called after each change, `onReplace(former, seq)` when the row of a push has another attempt. */
  constructor(onChange, onReplace = () => {}) {
    this.onChange = onChange;
    this.onReplace = onReplace;
    this.adding = Promise.resolve(); // the end of the newest `addAttempts`
    this.clear();
  }

  clear() {
    this.fetching?.abort();
    this.rest?.abort();
    this.rest = null;
    this.arrivedDuringLoad = null;
    this.q = "";
    this.sort = "";
    // Whether the list has one row for each push, its newest attempt that matches; then the number of all attempts that match, and the newest seq of one.
    this.isGrouped = false;
    this.attempts = 0;
    this.newestAttempt = 0;
    // Seq numbers: `loaded` in the order of the list; `newer` as received since, oldest first.
    this.loaded = [];
    this.newer = [];
    this.expected = 0;
    this.positions = null;
    // Whether more pushes follow the loaded ones, of which the number is not known; they are before the cursor `next`.
    this.isPartial = false;
    this.next = null;
    this.counted = null; // the number of those that match, without newer ones, once they are counted
    // The seq of the pushes that arrived while the list is sorted by a field, and are not in it.
    this.unlisted = new Set();
    this.rows = new Map();
    this.missing = new Set();
    this.total = 0;
    this.evicted = 0;
  }

  /** The number of pushes, including those whose seq is not known yet. */
  get length() {
    return this.newer.length + Math.max(this.expected, this.loaded.length);
  }

  /** The number of pushes that match; null if it is not known. */
  get matched() {
    if (!this.isPartial) return this.length;
    return this.counted === null ? null : this.counted + this.newer.length;
  }

  /** The largest seq of the pushes that are known to match; 0 without any. */
  get newest() {
    return [...this.loaded, ...this.newer, ...this.unlisted].reduce((one, other) => Math.max(one, other), 0);
  }

  seqAt(index) {
    if (index < this.newer.length) return this.newer[this.newer.length - 1 - index];
    return this.loaded[index - this.newer.length] ?? null;
  }

  /** The seq numbers from one index to another, both included, in any order. */
  seqsBetween(one, other) {
    const seqs = [];
    for (let index = Math.min(one, other); index <= Math.max(one, other); index += 1) {
      const seq = this.seqAt(index);
      if (seq !== null) seqs.push(seq);
    }
    return seqs;
  }

  /** The index of a push; -1 if unknown. */
  indexOf(seq) {
    if (!isSeq(seq)) return -1;
    const inNewer = isNamed(seq) ? this.newer.indexOf(seq) : position(this.newer, seq, (one) => one < seq);
    if (inNewer >= 0) return this.newer.length - 1 - inNewer;
    if (this.sort || isNamed(seq)) {
      // Built once for each load, because a sorted list does not change.
      if (this.positions?.size !== this.loaded.length) this.positions = new Map(this.loaded.map((one, index) => [one, index]));
      const index = this.positions.get(seq) ?? -1;
      return index < 0 ? -1 : this.newer.length + index;
    }
    const inLoaded = position(this.loaded, seq, (one) => one > seq);
    return inLoaded < 0 ? -1 : this.newer.length + inLoaded;
  }

  /** The number of pushes after a push. */
  countAfter(seq) {
    if (isNamed(seq)) return Math.max(0, this.indexOf(seq));
    let number = 0;
    while ((this.seqAt(number) ?? 0) > seq) number += 1;
    return number;
  }

  row(seq) {
    return this.rows.get(seq) ?? null;
  }

  /**
   * Loads the pushes that match `q`, in the order of `sort`; if `isGrouped`, one row for each push. Throws `ApiError` for an invalid query.
   * @param onProgress called during a long search with the searched share of the inbox, and with null at its end.
   */
  async load(q, { sort = "", isGrouped = false } = {}, onProgress = () => {}) {
    this.loading?.abort();
    const { signal } = (this.loading = new AbortController());
    // Pushes that arrive over the stream during the request.
    const arrived = (this.arrivedDuringLoad = []);
    const filter = filterOf(q);
    const isOrdered = sort !== "" || isGrouped; // then the seq of all rows is loaded first
    let page;
    try {
      page = isOrdered ? await this.loadOrder({ ...filter, ...(isGrouped ? { group: "push" } : {}) }, sort || "-seq", signal) : await this.firstPage(filter, signal, onProgress);
    } catch (error) {
      if (error.name !== "AbortError") onProgress(null);
      if (this.arrivedDuringLoad === arrived) this.endFailedLoad(arrived);
      throw error;
    }
    onProgress(null);
    this.clear();
    this.q = q;
    this.sort = sort;
    this.isGrouped = isGrouped;
    this.loaded = page.seqs ?? page.items.map((item) => item.seq);
    for (const item of page.items ?? []) this.keep(item);
    // With a store, a long list is loaded in parts as far as it is scrolled.
    this.isPartial = page.matched === null;
    this.next = page.next ?? null;
    this.expected = page.matched ?? this.loaded.length + PART;
    this.attempts = page.attempts ?? 0;
    this.newestAttempt = isGrouped ? this.newest : 0;
    this.total = page.total;
    this.evicted = page.evicted;
    this.addAll(arrived);
    this.onChange();
    if (this.isPartial) this.countAll(filter, page, signal);
    else this.loadRest();
  }

  /** Counts all pushes of a list that is loaded in parts. */
  async countAll(filter, { total, items }, signal) {
    if (total > MAX_COUNTED) return;
    const newest = items[0]?.seq ?? 0;
    const before = isNamed(newest) ? {} : { before: newest + 1 };
    const page = await get("/pushes", { ...filter, ...before, limit: 0, count: "exact" }, { signal }).catch(() => null);
    if (!page || signal.aborted) return;
    this.counted = page.matched;
    this.onChange();
  }

  /** Loads the first pushes of a search, in several requests if it takes long. */
  async firstPage(filter, signal, onProgress) {
    const query = { ...filter, ...FIRST_ROWS };
    let page = await get("/pushes", query, { signal });
    while (page.next !== null && page.items.length < query.limit) {
      if (page.last_seq) onProgress((page.last_seq + 1 - page.next) / Math.max(1, page.last_seq + 1 - page.first_seq));
      const found = page.items;
      page = await get("/pushes", { ...query, limit: query.limit - found.length, before: page.next }, { signal });
      page.items.unshift(...found);
      if (page.matched !== null) page.matched += found.length;
    }
    return page;
  }

  endFailedLoad(arrived) {
    this.arrivedDuringLoad = null;
    this.addAll(arrived);
  }

  async loadOrder(filter, sort, signal) {
    const isDescending = sort.startsWith("-");
    const query = { ...filter, sort: isDescending ? sort.slice(1) : sort, order: isDescending ? "desc" : "asc" };
    return get("/pushes/seqs", query, { signal });
  }

  /** Loads the seq numbers of all pushes after the loaded ones. */
  async loadRest() {
    if (this.sort || this.rest || this.loaded.length >= this.expected) return;
    const controller = (this.rest = new AbortController());
    try {
      const filter = { ...filterOf(this.q), before: this.isPartial ? this.next : this.loaded.at(-1) };
      for (const seq of await (this.isPartial ? this.loadPart(filter, controller.signal) : (await this.loadOrder(filter, "-seq", controller.signal)).seqs)) this.loaded.push(seq);
      this.expected = this.loaded.length + (this.isPartial ? PART : 0);
    } catch {
      return; // `want` retries.
    } finally {
      if (this.rest === controller) this.rest = null;
    }
    this.onChange();
  }

  /** Loads the seq numbers of all pushes of a list that is loaded in parts. */
  async loadAll() {
    if (!this.isPartial) return this.loadRest();
    this.rest?.abort();
    const controller = (this.rest = new AbortController());
    try {
      const { seqs } = await this.loadOrder({ ...filterOf(this.q), before: this.next }, "-seq", controller.signal);
      for (const seq of seqs) this.loaded.push(seq);
      Object.assign(this, { isPartial: false, next: null, expected: this.loaded.length });
    } finally {
      if (this.rest === controller) this.rest = null;
    }
    return this.onChange();
  }

  /** Loads the next part of a long list. Returns its seq numbers. */
  async loadPart(filter, signal) {
    const page = await get("/pushes", { ...filter, order: "desc", limit: PART, fields: ROW_FIELDS, within: WITHIN }, { signal });
    for (const item of page.items) this.keep(item);
    this.isPartial = page.next !== null;
    this.next = page.next;
    return page.items.map((item) => item.seq);
  }

  /** Loads the rows from `first` to `last`. */
  async want(first, last) {
    if (!this.isPartial || last >= this.length - PART) this.loadRest();
    const seqs = this.seqsBetween(first, last).filter((seq) => !this.rows.has(seq) && !this.missing.has(seq));
    if (!seqs.length) return;
    this.fetching?.abort();
    this.fetching = new AbortController();
    const query = { seqs: seqRanges(seqs)[0], kind: "*", limit: Math.min(1000, seqs.length), fields: ROW_FIELDS };
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

  /** Adds or updates pushes. Returns the number of new rows; if the list is grouped, a promise of it. */
  addAll(records) {
    return this.isGrouped ? (this.adding = this.adding.then(() => this.addAttempts(records))) : records.filter((record) => this.add(record)).length;
  }

  /** Adds or updates attempts of a grouped list. An attempt replaces the earlier ones of its push. */
  async addAttempts(records) {
    const list = this.loaded;
    // The first attempt of a new push has no others.
    const isAlone = (record) => this.indexOf(record.seq) >= 0 || (record.attempt === 1 && (isNamed(record.seq) || record.seq > (this.seqAt(0) ?? 0)));
    const keys = [...new Set(records.filter((record) => !isAlone(record)).map((record) => record.push_key))];
    const others = this.sort || this.arrivedDuringLoad ? [] : await attemptsOf(keys);
    if (list !== this.loaded) return 0; // The list was loaded again, with these.
    const series = new Map(seriesOf(others).flatMap((attempts) => attempts.map((one) => [one.seq, attempts])));
    let added = 0;
    for (const record of records) {
      const isNew = !this.arrivedDuringLoad && (isNamed(record.seq) ? this.indexOf(record.seq) < 0 : record.seq > this.newestAttempt);
      if (isNew) {
        this.newestAttempt = record.seq;
        this.attempts += 1;
        this.total += 1;
      }
      const listed = (series.get(record.seq) ?? []).filter((one) => one.seq !== record.seq && this.indexOf(one.seq) >= 0);
      if (listed.some((one) => one.attempt > record.attempt)) continue;
      for (const one of listed) this.remove(one.seq);
      if (this.add(record) && !listed.length) added += 1;
      for (const one of listed) this.onReplace(one.seq, record.seq);
    }
    return added;
  }

  /** Removes a row. */
  remove(seq) {
    const index = this.indexOf(seq);
    if (index < 0) return;
    if (index < this.newer.length) this.newer.splice(this.newer.length - 1 - index, 1);
    else {
      this.loaded.splice(index - this.newer.length, 1);
      this.expected -= 1;
    }
    this.positions = null;
    this.rows.delete(seq);
  }

  /** Adds or updates a push. Returns whether it is new. */
  add(record) {
    if (this.arrivedDuringLoad) {
      this.arrivedDuringLoad.push(record);
      return false;
    }
    this.missing.delete(record.seq);
    const isKnown = this.indexOf(record.seq) >= 0;
    if (this.sort) {
      const isNew = !isKnown && !this.unlisted.has(record.seq);
      if (isKnown) this.keep(record);
      else this.unlisted.add(record.seq);
      return isNew;
    }
    // A view of several servers reports new pushes only.
    const isNew = !isKnown && (isNamed(record.seq) || record.seq > (this.loaded[0] ?? 0));
    // An older push that has begun to match; pushes after the loaded ones follow with the rest of the list.
    const isLoading = this.loaded.length < this.expected && record.seq < (this.isPartial ? this.next : this.loaded.at(-1));
    if (!isKnown && !isNew && !isLoading) {
      const index = this.loaded.findIndex((one) => one < record.seq);
      this.loaded.splice(index < 0 ? this.loaded.length : index, 0, record.seq);
      this.expected += 1;
      this.keep(record);
    }
    if (isNew) {
      let index = this.newer.length;
      while (!isNamed(record.seq) && index > 0 && this.newer[index - 1] > record.seq) index -= 1;
      this.newer.splice(index, 0, record.seq);
    }
    if (isNew || this.rows.has(record.seq)) this.keep(record);
    return isNew;
  }
}

/** Loads all attempts with these keys, of any push; without those whose request fails. */
export async function attemptsOf(keys) {
  const found = [];
  for (let start = 0; start < keys.length; start += MAX_KEYS) {
    const q = keys.slice(start, start + MAX_KEYS).map((key) => `push_key:${key}`).join(" ");
    found.push(...(await get("/pushes", { q, order: "desc", limit: 1000, fields: SERIES_FIELDS }).catch(() => null))?.items ?? []);
  }
  return found;
}

/** The index of `wanted` in a sorted array; -1 if it is not in it. `isBefore` returns whether an element precedes it. */
function position(seqs, wanted, isBefore) {
  let [low, high] = [0, seqs.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isBefore(seqs[middle])) low = middle + 1; else high = middle;
  }
  return seqs[low] === wanted ? low : -1;
}
