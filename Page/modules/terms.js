// Conditions in a search: `status:503 topic:"com.acme.app" order shipped`.

const TERM = /(?:[^\s"]|"(?:[^"\\]|\\.)*")+/g;
const PARTS = /^((?:[^\s":=<>]|"(?:[^"\\]|\\.)*")+)(?:[:=]|(?=[<>]))(!?)(.*)$/s;
const MAX_QUERY = 4000; // characters; the server accepts 4096

/** Whether a word is the number of a push, such as `#4711`. */
const isNumber = (word) => /^#[0-9]{1,15}$/.test(word);

/** The sign of a term, `!` or before a letter, a digit or `#` also `-`, and the term without it. */
function signed(text) {
  const parts = /^(?:!|-(?=[\p{L}\d"#]))/u.exec(text);
  return { isNegated: parts !== null, rest: parts ? text.slice(1) : text };
}

/**
 * The parameters of the API for a search. A word without a field occurs anywhere in a push, or is one of its values; `#4711` is the number of a
 * push. `-` negates as `!` does.
 */
export function filterOf(q) {
  const [numbers, others] = [new Set(), new Set()];
  const search = terms(q).map((text) => {
    const { isNegated, rest } = signed(text);
    // A device token as rows show it: its beginning and its end.
    if (!isNumber(rest)) return `${isNegated ? "!" : ""}${/^[0-9a-f]{4}…[0-9a-f]{4}$/i.test(rest) ? `token:${rest.replace("…", "*")}` : rest}`;
    (isNegated ? others : numbers).add(Number(rest.slice(1)));
    return "";
  }).filter(Boolean).join(" ");
  const list = (name, of) => (of.size ? { [name]: [...of].sort((one, other) => one - other).join(",") } : {});
  return { ...(search ? { search } : {}), ...list("seqs", numbers), ...list("!seqs", others) };
}

function terms(q) {
  return q.match(TERM) ?? [];
}

/** The conditions of a search: `{text, field, value, isNegated}`; the field of a word that can occur anywhere is null. */
export function conditions(q) {
  return terms(q).map((text) => {
    const { isNegated, rest } = signed(text);
    const parts = PARTS.exec(rest);
    if (parts) return { text, field: parts[1], value: unquoted(parts[3]), isNegated: isNegated !== (parts[2] === "!") };
    return { text, field: isNumber(rest) ? "number" : null, value: unquoted(rest), isNegated };
  });
}

/** The texts that a search looks for anywhere in a push. */
export function searchedTexts(q) {
  return conditions(q).filter((one) => !one.isNegated && (one.field === null || one.field === "text") && one.value).map((one) => one.value);
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

/** The query with another text instead of the condition at `index`. */
export function replacedTerm(q, index, text) {
  return terms(q).map((one, other) => (other === index ? text : one)).filter(Boolean).join(" ");
}

/** The query without the condition at `index`. */
export const withoutTerm = (q, index) => replacedTerm(q, index, "");

/** A value quoted for the query language. A single `*` stays a pattern. */
export function quoted(value) {
  const text = String(value);
  if (text === "*" || /^[\w.-]+$/.test(text)) return text;
  return `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("*", "\\*").replaceAll("\n", "\\n").replaceAll("\t", "\\t")}"`;
}

/** A search for the pushes to device tokens: to as many of them as a query can have. */
export function tokenSearch(tokens) {
  let q = "";
  for (const token of tokens) if (q.length + token.length + 7 <= MAX_QUERY) q += `${q && " "}token:${token}`;
  return q;
}

/** The hint of an invalid search, without the list of fields after a suggestion, which is in the syntax sheet. */
export function shortHint({ hint }) {
  return /^did you mean [^?]*\?/.exec(hint ?? "")?.[0] ?? hint ?? "";
}
