// The seq of a push: a number, or in a view of several servers the server and the number there, such as `load_1:4711`.

/** Whether a value is the seq of a push. */
export function isSeq(value) {
  return typeof value === "number" || isNamed(value);
}

/** Whether a value is the seq of a push in a view of several servers. Such pushes have no order but that of a list. */
export function isNamed(value) {
  return typeof value === "string" && /^[a-z0-9_]+:[0-9]{1,15}$/.test(value);
}

/** The seq that a text shows; null if it shows none. */
export function seqOf(text) {
  if (/^[0-9]{1,15}$/.test(text ?? "")) return Number(text);
  return isNamed(text) ? text : null;
}
