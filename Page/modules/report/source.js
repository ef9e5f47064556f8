// Answers the requests of the page from the records that are embedded in a report, instead of a server.
import { ApiError } from "../api.js";
import { seriesOf } from "../attempts.js";
import { matcher } from "./query.js";

const WIDTHS = [1, 5, 10, 50, 100, 500, 1000, 5000, 10000, 30000, 60000, 300000, 600000, 1800000, 3600000, 21600000, 43200000, 86400000, 604800000];
const WAIT_BOUNDS = [0, 10, 50, 100, 250, 500, 1000, 2000, 5000, 10000, 30000, 60000, 300000, 900000]; // milliseconds, as those of the API
const PART = 4_000_000; // bytes that are parsed at once
const LINE_BREAK = 10;
const KNOWN = 8; // searches
const AT = Symbol("milliseconds since 1970 of the arrival, which the JSON of a record does not show");
const SORTS = {
  seq: (one) => one.seq, outcome: (one) => one.outcome, status: (one) => one.served?.status, reason: (one) => one.served?.reason, topic: (one) => one.apns?.topic,
  push_type: (one) => one.apns?.push_type, priority: (one) => one.apns?.priority, device_token: (one) => one.request?.device_token, attempt: (one) => one.attempt,
  size: (one) => one.request?.size?.bytes, latency: (one) => one.served?.latency_ms, connection: (one) => Number(one.connection?.id?.replace(/\D/g, "")), collapse_id: (one) => one.apns?.collapse_id,
};

/** Returns the records in the script element `records`: compressed lines of JSON with a comma, in Base64. The first screen is painted before, and the page responds while it reads. */
export async function readRecords() {
  await painted();
  const { writable, readable } = new DecompressionStream("deflate-raw");
  const writer = writable.getWriter();
  const written = [writer.write(bytesOf(document.getElementById("records").textContent)), writer.close()];
  const [buffer] = await Promise.all([new Response(readable).arrayBuffer(), ...written]);
  const bytes = new Uint8Array(buffer);
  const records = [];
  for (let start = 0; start < bytes.length;) {
    // A few texts are parsed faster than 20,000. A record has no line break.
    const end = bytes.indexOf(LINE_BREAK, start + PART);
    const text = new TextDecoder().decode(bytes.subarray(start, end < 0 ? bytes.length : end));
    for (const record of JSON.parse(`[${text.trimEnd().slice(0, -1)}]`)) {
      record[AT] = Date.parse(record.received_at);
      records.push(record);
    }
    start = end < 0 ? bytes.length : end + 1;
    await new Promise((resolve) => setTimeout(resolve));
  }
  records.sort((one, other) => one.seq - other.seq);
  const accepted = new Set();
  for (const record of records) {
    if (!record.accepted) continue;
    const key = `${record.push_key} ${record.run} ${record.test_number}`;
    record.isDuplicate = accepted.has(key);
    accepted.add(key);
  }
  return records;
}

/** Waits until the page is painted; a page that is not visible is not. */
function painted() {
  return new Promise((resolve) => {
    setTimeout(resolve, 200);
    requestAnimationFrame(() => setTimeout(resolve));
  });
}

/** The record as the API returns it: in a report, the checks that passed are the bits of one number. `names`: of all checks, that of the lowest bit first. */
function whole(record, names) {
  const { passed, checks, ...verdict } = record.verdict ?? {};
  const isPassed = (name, index) => Math.floor(passed / 2 ** index) % 2 === 1;
  return passed ? { ...record, verdict: { ...verdict, checks: [...names.filter(isPassed).map((check) => ({ check, ok: true })), ...checks] } } : record;
}

/** Answers requests. `records` is a promise of the records, `summary` the report. */
export class Source {
  constructor(records, summary) {
    this.loaded = records;
    this.summary = summary;
    this.known = new Map(); // by search
    this.runs = new Map(summary.runs.map((run) => [run.id, run.name]));
  }

  /** Returns the JSON, or the text, of a response. */
  async answer(path, query = {}) {
    const records = await this.loaded;
    const [, kind, id, part] = path.split("/");
    switch (kind) {
      case "status": return { inbox: { records: records.length, last_seq: records.at(-1)?.seq ?? 0 } };
      case "stats": return this.stats(this.found(records, query), query);
      case "findings": return this.findings(records, query);
      case "connections": if (!id) return connections(records); break;
      case "pushes":
        if (!id) return this.page(records, query);
        if (id === "seqs") return this.seqs(records, query);
        return this.push(records, decodeURIComponent(id), part);
    }
    throw new ApiError(404, { detail: "the report does not contain this", hint: "" });
  }

  /** The records that match; those of the last searches are known. */
  found(records, { fields, limit, order, within, buckets, sort, group, ...filter }) {
    const key = JSON.stringify(filter);
    if (!this.known.has(key)) {
      const matches = matcher(filter, this.runs);
      const { after = 0, before = Infinity } = filter;
      if (this.known.size >= KNOWN) this.known.delete(this.known.keys().next().value);
      this.known.set(key, records.filter((record) => record.seq > after && record.seq < before && matches(record)));
    }
    return this.known.get(key);
  }

  page(records, query) {
    const found = this.found(records, query);
    const limit = query.limit ?? 50;
    const items = (query.order === "desc" ? found.slice(Math.max(0, found.length - limit)).reverse() : found.slice(0, limit)).map((one) => whole(one, this.summary.checks));
    return { items, next: items.length && items.length < found.length ? items.at(-1).seq : null, matched: found.length, total: records.length, evicted: 0, complete: true, first_seq: records[0]?.seq ?? 1, last_seq: records.at(-1)?.seq ?? 0 };
  }

  seqs(records, query) {
    const matches = this.found(records, query);
    const found = query.group ? seriesOf(matches).map((attempts) => attempts.at(-1)) : matches;
    const key = SORTS[query.sort ?? "seq"];
    if (!key) throw new ApiError(400, { detail: `sort cannot be "${query.sort}"` });
    const sign = query.order === "desc" ? -1 : 1;
    const isMissing = (value) => value === null || value === undefined;
    const compare = (one, other) => {
      const [first, second] = [key(one), key(other)];
      if (isMissing(first) || isMissing(second)) return isMissing(first) - isMissing(second) || other.seq - one.seq;
      return (first < second ? -1 : first > second ? 1 : 0) * sign || (query.sort === "seq" || !query.sort ? 0 : other.seq - one.seq);
    };
    return { seqs: found.toSorted(compare).map((one) => one.seq), matched: found.length, attempts: matches.length, total: records.length, evicted: 0 };
  }

  push(records, id, part) {
    const attempts = /^\d+$/.test(id) ? records.filter((one) => one.seq === Number(id)) : records.filter((one) => one.apns?.id?.toLowerCase() === id.toLowerCase());
    const record = attempts.length ? whole(attempts.at(-1), this.summary.checks) : null;
    if (!record) throw new ApiError(404, { detail: `the report does not contain push ${id}`, hint: "" });
    if (part === "payload") return record.request.payload === null ? decoded(record.request.body_base64) : JSON.stringify(record.request.payload);
    if (part === "explain") throw new ApiError(404, { detail: "the report does not contain this" });
    return /^\d+$/.test(id) ? record : { ...record, attempts: attempts.map((one) => one.seq) };
  }

  stats(found, query) {
    const by = (of) => {
      const counts = {};
      let none = 0;
      for (const record of found) {
        const value = of(record);
        if (value === null || value === undefined) none += 1; else counts[value] = (counts[value] ?? 0) + 1;
      }
      return { counts: Object.fromEntries(Object.entries(counts).sort((one, other) => other[1] - one[1]).slice(0, 50)), none, other: 0 };
    };
    const latencies = found.map((one) => one.served?.latency_ms).filter((one) => typeof one === "number").sort((one, other) => one - other);
    const waits = retryWaits(found);
    const number = (of) => new Set(found.map(of).filter(Boolean)).size;
    return {
      matched: found.length, total: found.length, evicted: 0, complete: true, accepted: found.filter((one) => one.accepted).length, retries: found.filter((one) => one.attempt > 1).length,
      device_tokens: number((one) => one.request?.device_token?.toLowerCase()), connections: number((one) => one.connection?.id),
      time_to_acceptance: { pushes: waits.accepted.length, ...percentiles(waits.accepted) },
      retry_delay: { retries: waits.delays.length, ...percentiles(waits.delays), buckets: WAIT_BOUNDS.map((from_ms, index) => ({ from_ms, count: waits.delays.filter((one) => one >= from_ms && one < (WAIT_BOUNDS[index + 1] ?? Infinity)).length })) },
      latency: { answered: latencies.length, ...percentiles(latencies) },
      outcome: by((one) => one.outcome), status: by((one) => one.served?.status), reason: by((one) => one.served?.reason), topic: by((one) => one.apns?.topic),
      push_type: by((one) => one.apns?.push_type), rule: by((one) => one.fault?.rule), timeline: timeline(found, query.buckets ?? 60, (one) => [one.outcome]),
    };
  }

  findings(records, query) {
    const found = this.found(records, { kind: "*", ...query });
    const known = new Map(this.summary.findings.map((one) => [one.finding, one]));
    const items = [...new Set(found.flatMap((one) => one.findings))].sort().map((finding) => {
      const these = found.filter((one) => one.findings.includes(finding));
      const { summary = "", advice = "", records: examples = [] } = known.get(finding) ?? {};
      const explained = new Map(examples.map((one) => [one.seq, one.explanation]));
      return { finding, count: these.length, summary, advice, more: 0,
        records: (examples.length ? examples.map((one) => one.seq) : these.slice(-20).map((one) => one.seq)).map((seq) => ({ seq, evidence: [seq], explanation: explained.get(seq) ?? summary })) };
    });
    return { items, total: items.reduce((sum, one) => sum + one.count, 0), evicted: 0, complete: true, timeline: timeline(found.filter((one) => one.findings.length), query.buckets ?? 40, (one) => one.findings) };
  }
}

/** The connections of the records, without their events, which records do not contain. */
function connections(records) {
  const known = new Map();
  for (const { connection, received_at: at, finished_at: end } of records) {
    if (!known.has(connection.id)) known.set(connection.id, { ...connection, number: known.size + 1, state: "closed", pushes: 0, events: [{ event: "first push", at }] });
    const one = known.get(connection.id);
    one.pushes += 1;
    one.events[1] = { event: "last push", at: end ?? at };
  }
  return { items: [...known.values()], open: 0 };
}

function decoded(base64) {
  return base64 ? new TextDecoder().decode(bytesOf(base64)) : "";
}

function bytesOf(base64) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64);
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let index = 0; index < text.length; index += 1) bytes[index] = text.charCodeAt(index);
  return bytes;
}

/** The milliseconds from one attempt of a push to the next, and from the first one to the acceptance after a retry; both ascending. */
function retryWaits(records) {
  const open = new Map();
  const [delays, accepted] = [[], []];
  for (const record of records) {
    const key = `${record.push_key} ${record.run} ${record.test_number}`;
    const at = record[AT];
    const known = record.attempt > 1 ? open.get(key) : undefined;
    if (known) delays.push(at - known.newest);
    if (record.accepted && known) accepted.push(at - known.first + (record.served?.latency_ms ?? 0));
    if (record.accepted) open.delete(key); else open.set(key, { first: known?.first ?? at, newest: at });
  }
  return { delays: delays.sort((one, other) => one - other), accepted: accepted.sort((one, other) => one - other) };
}

function percentiles(sorted) {
  const at = (share) => sorted[Math.max(0, Math.ceil((sorted.length * share) / 100) - 1)] ?? null;
  return { median_ms: at(50), p90_ms: at(90), p99_ms: at(99), max_ms: sorted.at(-1) ?? null };
}

/** The counts of records over time, in at most `buckets` parts of equal width. */
function timeline(records, buckets, seriesOf) {
  if (!records.length) return { start: null, bucket_ms: 1, counts: {} };
  let [first, last] = [Infinity, -Infinity];
  for (const record of records) {
    first = Math.min(first, record[AT]);
    last = Math.max(last, record[AT]);
  }
  const width = WIDTHS.find((one) => Math.floor(last / one) - Math.floor(first / one) < buckets) ?? Math.ceil((last - first + 1) / buckets);
  const start = Math.floor(first / width);
  const length = Math.floor(last / width) - start + 1;
  const counts = {};
  for (const record of records) {
    for (const series of seriesOf(record)) {
      counts[series] ??= new Array(length).fill(0);
      counts[series][Math.floor(record[AT] / width) - start] += 1;
    }
  }
  return { start: new Date(start * width).toISOString(), bucket_ms: width, counts };
}
