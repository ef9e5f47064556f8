// The structural difference of two JSON values, by JSON pointer.

const MAX = 2000;

/**
 * The differences, in the order of the members: `{pointer, kind, before, after}`, where `kind` is `added`, `removed` or
 * `changed`. The order of the members of an object does not matter. At most 2000 are returned.
 */
export function differences(before, after) {
  const found = [];
  compare("", before, after, found);
  return found;
}

/** Whether JavaScript represents all of a JSON text: every number exactly, and no repeated members. */
export function isExact(text) {
  return JSON.stringify(JSON.parse(text)).replace(/\s/g, "") === text.replace(/\s/g, "");
}

function compare(pointer, before, after, found) {
  if (found.length >= MAX) return;
  const kind = kindOf(before);
  if (kind !== kindOf(after)) found.push({ pointer, kind: "changed", before, after });
  else if (kind === "object") compareMembers(pointer, before, after, Object.keys(before), Object.keys(after), found);
  else if (kind === "array") compareMembers(pointer, before, after, [...before.keys()], [...after.keys()], found);
  else if (before !== after) found.push({ pointer, kind: "changed", before, after });
}

function compareMembers(pointer, before, after, names, others, found) {
  for (const name of [...names, ...others.filter((other) => !Object.hasOwn(before, other))]) {
    if (found.length >= MAX) return;
    const next = `${pointer}/${String(name).replaceAll("~", "~0").replaceAll("/", "~1")}`;
    if (!Object.hasOwn(after, name)) found.push({ pointer: next, kind: "removed", before: before[name] });
    else if (!Object.hasOwn(before, name)) found.push({ pointer: next, kind: "added", after: after[name] });
    else compare(next, before[name], after[name], found);
  }
}

function kindOf(value) {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}
