// Conditions in a search: `status:503 topic:"com.acme.app" order shipped`.

const TERM = /(?:[^\s"]|"(?:[^"\\]|\\.)*")+/g;
const PARTS = /^(!?)((?:[^\s":=<>]|"(?:[^"\\]|\\.)*")+)(?:[:=]|(?=[<>]))(!?)(.*)$/s;

/** The parameter of the API for a search, in which words without a field occur anywhere in a push. */
export function filterOf(q) {
  return q ? { search: q } : {};
}

function terms(q) {
  return q.match(TERM) ?? [];
}

/** The conditions of a search: `{text, field, value, isNegated}`; the field of a word is null. */
export function conditions(q) {
  return terms(q).map((text) => {
    const parts = PARTS.exec(text);
    if (!parts) return { text, field: null, value: unquoted(text.replace(/^!/, "")), isNegated: text.startsWith("!") };
    return { text, field: parts[2], value: unquoted(parts[4]), isNegated: (parts[1] === "!") !== (parts[3] === "!") };
  });
}

function unquoted(value) {
  return value.startsWith('"') && value.endsWith('"') && value.length > 1 ? value.slice(1, -1).replace(/\\(.)/g, "$1") : value;
}

/** The value of the condition on `field`; null if there is none, or it is negated. */
export function term(q, field) {
  const found = terms(q).find((one) => one.startsWith(`${field}:`));
  return found ? unquoted(found.slice(field.length + 1)) : null;
}

/** The query with `field:value` instead of other conditions on the field; without any if `value` is null. */
export function withTerm(q, field, value) {
  const others = terms(q).filter((one) => !one.startsWith(`${field}:`));
  return [...others, ...(value === null ? [] : [`${field}:${quoted(value)}`])].join(" ");
}

/** The query without the condition at `index`. */
export function withoutTerm(q, index) {
  return terms(q).filter((_, other) => other !== index).join(" ");
}

/** A value quoted for the query language. A single `*` stays a pattern. */
export function quoted(value) {
  const text = String(value);
  if (text === "*" || /^[\w.-]+$/.test(text)) return text;
  return `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("*", "\\*").replaceAll("\n", "\\n").replaceAll("\t", "\\t")}"`;
}
