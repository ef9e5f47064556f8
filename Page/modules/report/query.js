// Evaluates searches on the records that are embedded in a report, as the API of a server does.
import { ApiError } from "../api.js";
import { conditions } from "../terms.js";

const SIZES = { "": 1, b: 1, k: 1024, kb: 1000, kib: 1024, m: 1048576, mb: 1e6, mib: 1048576 };
const AGES = { ms: 1, s: 1000, m: 60000, h: 3600000, d: 86400000 };
const injections = (record) => (record.fault ? [record.fault, ...(record.fault.also ?? [])] : []);

/** For each field its values in a record. `kind`: how values are compared; text in the case of its letters by default. */
const FIELDS = {
  device_token: { kind: "anyCase", of: (record) => record.request?.device_token }, topic: { of: (record) => record.apns?.topic },
  status: { kind: "number", of: (record) => record.served?.status }, reason: { of: (record) => record.served?.reason },
  outcome: { of: (record) => record.outcome }, decision: { of: (record) => record.decision }, ending: { of: (record) => record.ending },
  violation: { kind: "anyCase", of: (record) => record.violation }, accepted: { of: (record) => String(record.accepted) },
  delivery: { kind: "anyCase", of: (record) => record.delivery }, push_type: { of: (record) => record.apns?.push_type },
  priority: { kind: "number", of: (record) => record.apns?.priority }, apns_id: { kind: "anyCase", of: (record) => record.apns?.id },
  collapse_id: { of: (record) => record.apns?.collapse_id }, push_key: { kind: "anyCase", of: (record) => record.push_key },
  attempt: { kind: "number", of: (record) => record.attempt }, rule: { of: (record) => injections(record).map((one) => one.rule) },
  profile: { of: (record) => injections(record).map((one) => one.profile) }, finding: { of: (record) => record.findings },
  run: { of: (record) => record.run }, test: { of: (record) => record.test }, connection: { of: (record) => record.connection?.id },
  listener: { kind: "number", of: (record) => record.listener }, environment: { of: (record) => record.environment }, kind: { of: (record) => record.kind },
  key_id: { of: (record) => record.auth?.key_id }, team_id: { of: (record) => record.auth?.team_id },
  since: { kind: "since", of: (record) => Date.parse(record.received_at) }, until: { kind: "until", of: (record) => Date.parse(record.received_at) },
  size: { kind: "size", of: (record) => record.request?.size?.bytes }, size_gt: { kind: "larger", of: (record) => record.request?.size?.bytes },
  size_lt: { kind: "smaller", of: (record) => record.request?.size?.bytes }, is: { of: states }, text: { kind: "anywhere", of: textOf },
};
const SHORT = { token: "device_token", type: "push_type", id: "apns_id", collapse: "collapse_id", larger: "size_gt", smaller: "size_lt" };

function states(record) {
  return [record.attempt > 1 ? "retry" : "first", record.outcome === "pending" && "pending", record.isDuplicate && "duplicate", record.fault && "faulted", record.upstream?.deviating && "deviating"].filter(Boolean);
}

/** The values that a word of a search finds, in any case of its letters, although they are not in the text of the push. */
function valuesOf(record) {
  return [record.served?.status, record.served?.reason, record.outcome, record.environment, record.apns?.id,
    ...injections(record).flatMap((one) => [one.rule, one.profile]), ...(record.findings ?? [])].map((value) => String(value ?? "").toLowerCase());
}

/** The values that a word finds as they are written. */
const idsOf = (record) => [record.run, record.connection?.id, record.auth?.key_id, record.auth?.team_id];

/** Whether a word is a value of the push that is not in its text, or a part of a name; `runs` has the names of the runs. */
function isValue(text, record, runs) {
  const word = text.toLowerCase();
  const has = (name) => (name ?? "").toLowerCase().includes(word);
  return valuesOf(record).includes(word) || idsOf(record).includes(text) || (word.length > 2 && (has(record.test) || has(runs.get(record.run)))) || (word.length > 4 && has(record.delivery));
}

const texts = new WeakMap();
function textOf(record) {
  if (!texts.has(record)) texts.set(record, JSON.stringify([record.request?.headers, record.request?.payload, record.request?.payload_error, record.request?.path]).toLowerCase());
  return texts.get(record);
}

function problem(field, value, hint) {
  return new ApiError(400, { detail: `${field} cannot be "${value}"`, hint });
}

/** Returns a function that returns whether a record matches the parameters of a request. `runs` has the names of the runs by their ids. */
export function matcher(parameters, runs) {
  const groups = new Map();
  const words = [];
  for (const [name, given] of Object.entries(parameters)) {
    if (["q", "search"].includes(name)) {
      for (const one of conditions(given)) {
        if (one.field === null) words.push({ value: one.value, isNegated: one.isNegated, isText: one.value !== one.text.replace(/^[!-]/, "") });
        else add(groups, one.field, /^(?:!?)(?:[^\s":=<>]|"(?:[^"\\]|\\.)*")+[:=]?!?(.*)$/s.exec(one.text)[1], one.isNegated);
      }
    } else if (name === "scope" || FIELDS[SHORT[name] ?? name]) add(groups, name, String(given), false);
  }
  const tests = [...groups.values()];
  const seqs = parameters.seqs === undefined ? null : ranges(String(parameters.seqs));
  const excluded = parameters["!seqs"] === undefined ? [] : ranges(String(parameters["!seqs"]));
  const namesKind = groups.has("kind");
  return (record) => (namesKind || record.kind === "push") && (seqs === null || seqs.some(([first, last]) => record.seq >= first && record.seq <= last))
    && !excluded.some(([first, last]) => record.seq >= first && record.seq <= last)
    && words.every(({ value, isNegated, isText }) => (textOf(record).includes(value.toLowerCase()) || (!isText && isValue(value, record, runs))) !== isNegated)
    && tests.every(({ of, wanted, unwanted }) => {
      const found = [of(record)].flat().filter((value) => value !== null && value !== undefined);
      const holds = (test) => found.some(test);
      return !unwanted.some(holds) && (wanted.length === 0 || wanted.some(holds));
    });
}

function ranges(text) {
  return text.split(",").map((part) => part.split("-").map(Number)).map(([first, last]) => [first, last ?? first]);
}

function add(groups, name, raw, isNegated) {
  const field = SHORT[name] ?? name;
  const found = FIELDS[field] ?? pathOf(field);
  const near = found ? null : Object.keys(FIELDS).find((one) => areNear(one, name));
  if (!found) throw new ApiError(400, { detail: `unknown field "${name}"${near ? `: did you mean ${near}?` : ""}`, hint: `The fields are ${Object.keys(FIELDS).join(", ")}, payload./pointer and header.name.` });
  if (!groups.has(field)) groups.set(field, { of: found.of, wanted: [], unwanted: [] });
  groups.get(field)[isNegated ? "unwanted" : "wanted"].push(testOf(found.kind ?? "text", name, raw));
}

/** Whether two names differ by one letter, or by two letters in the other order. */
function areNear(one, other) {
  let start = 0;
  while (start < one.length && one[start] === other[start]) start += 1;
  const [rest, others] = [one.slice(start), other.slice(start)];
  return rest.slice(1) === others || rest === others.slice(1) || rest.slice(1) === others.slice(1) || (rest[0] === others[1] && rest[1] === others[0] && rest.slice(2) === others.slice(2));
}

/** A field that names a place in the push: `payload./aps/badge` or `header.apns-id`. */
function pathOf(field) {
  if (field.startsWith("header.")) {
    const name = field.slice(7).toLowerCase();
    return { kind: "any", of: (record) => (record.request?.headers ?? []).filter(([one]) => one === name).map(([, value]) => value) };
  }
  if (!field.startsWith("payload./")) return null;
  const names = field.slice(9).split("/").map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
  return { kind: "any", of: (record) => {
    let value = record.request?.payload;
    for (const name of names) value = value !== null && typeof value === "object" && Object.hasOwn(value, name) ? value[name] : undefined;
    return value !== null && typeof value === "object" ? JSON.stringify(value) : value;
  } };
}

/** Returns the test that a value of a condition means. */
function testOf(kind, name, raw) {
  const plain = raw.startsWith('"') ? raw.slice(1, -1).replace(/\\(.)/g, "$1") : raw;
  switch (kind) {
    case "anywhere": return (text) => text.includes(plain.toLowerCase());
    case "since": case "until": {
      const time = timeOf(plain);
      if (Number.isNaN(time)) throw problem(name, plain, "Use a time such as 2026-01-31T12:00:00.000Z, or so long ago as -5m.");
      return kind === "since" ? (one) => one >= time : (one) => one < time;
    }
    case "larger": case "smaller": {
      const size = numberOf(plain);
      return kind === "larger" ? (one) => one > size : (one) => one < size;
    }
    default: {
      const range = raw.startsWith('"') ? null : rangeOf(plain);
      if (range && (kind !== "text" && kind !== "anyCase")) return (one) => typeof one !== "string" || one.trim() !== "" ? Number(one) >= range[0] && Number(one) <= range[1] : false;
      const pattern = patternOf(raw, kind === "anyCase");
      return (one) => pattern.test(String(one));
    }
  }
}

function timeOf(text) {
  const age = /^-(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text);
  return age ? Date.now() - Number(age[1]) * AGES[age[2]] : Date.parse(text);
}

function numberOf(text) {
  const parts = /^(\d+(?:\.\d+)?)\s*([a-z]*)$/i.exec(text);
  return parts && SIZES[parts[2].toLowerCase()] !== undefined ? Number(parts[1]) * SIZES[parts[2].toLowerCase()] : NaN;
}

/** The range of numbers that `>3`, `<=3`, `3..9` or `3` means; null for other texts. */
function rangeOf(text) {
  const bound = /^([<>]=?)(.*)$/.exec(text);
  if (bound) {
    const number = numberOf(bound[2]);
    if (Number.isNaN(number)) return null;
    return { ">": [number + 1e-9, Infinity], ">=": [number, Infinity], "<": [-Infinity, number - 1e-9], "<=": [-Infinity, number] }[bound[1]];
  }
  const [first, last] = text.includes("..") ? text.split("..", 2).map(numberOf) : [numberOf(text), numberOf(text)];
  return Number.isNaN(first) || Number.isNaN(last) ? null : [first, last];
}

/** The pattern of a value, in which `*` means any text unless a backslash is before it. */
function patternOf(raw, isAnyCase) {
  const text = raw.startsWith('"') ? raw.slice(1, -1) : raw;
  let source = "";
  for (let index = 0; index < text.length; index += 1) {
    if (text[index] === "*") source += ".*";
    else {
      if (text[index] === "\\" && raw.startsWith('"')) index += 1;
      source += (text[index] ?? "").replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
    }
  }
  return new RegExp(`^${source}$`, isAnyCase ? "is" : "s");
}
