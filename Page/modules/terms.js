// Conditions in a search query: `status:503 topic:"com.acme.app"`.

const TERM = /(?:[^\s"]|"(?:[^"\\]|\\.)*")+/g;

function terms(q) {
  return q.match(TERM) ?? [];
}

/** The value of the condition on `field`; null if there is none, or it is negated. */
export function term(q, field) {
  const found = terms(q).find((one) => one.startsWith(`${field}:`));
  if (!found) return null;
  const value = found.slice(field.length + 1);
  return value.startsWith('"') && value.endsWith('"') ? value.slice(1, -1).replace(/\\(.)/g, "$1") : value;
}

/** The query with `field:value` instead of other conditions on the field; without any if `value` is null. */
export function withTerm(q, field, value) {
  const others = terms(q).filter((one) => !one.startsWith(`${field}:`));
  return [...others, ...(value === null ? [] : [`${field}:${quoted(value)}`])].join(" ");
}

/** A value quoted for the query language. A single `*` stays a pattern. */
export function quoted(value) {
  const text = String(value);
  if (text === "*" || /^[\w.-]+$/.test(text)) return text;
  return `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("*", "\\*").replaceAll("\n", "\\n").replaceAll("\t", "\\t")}"`;
}
