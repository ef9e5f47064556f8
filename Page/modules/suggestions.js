// Searches that find something, for one that finds nothing.
import { get } from "./api.js";
import { button, h, replace } from "./dom.js";
import { count } from "./format.js";
import { go } from "./route.js";
import { conditions, filterOf, replacedTerm, withoutTerm } from "./terms.js";
import { visible } from "./visible.js";

const MAX_SUGGESTED = 6; // of each kind

/**
 * Returns an element with searches for values that have the words of `q`, and with the search without one of its conditions, each with the number
 * of pushes that it finds. `valuesOf(condition)` returns a promise of suggested values.
 */
export function suggestions(q, valuesOf) {
  const element = h("div", { class: "suggestions" });
  draw(element, q, (one) => valuesOf(one).catch(() => []));
  return element;
}

async function draw(element, q, valuesOf) {
  const all = conditions(q);
  const isPhrase = all.length > 1 && all.every((one) => one.field === null && !one.isNegated);
  const phrases = isPhrase ? (await valuesOf({ value: q })).map((other) => ({ ...other, q: other.text })) : [];
  const values = await Promise.all(all.map(async (one, index) => (one.isNegated ? [] : await valuesOf(one)).map((other) => ({ ...other, q: replacedTerm(q, index, other.text) }))));
  const [instead, without] = await Promise.all([
    withResults([...phrases, ...values.flat()].filter((other) => other.q !== q)),
    withResults(all.length > 1 ? all.map((one, index) => ({ text: one.text, q: withoutTerm(q, index) })) : []),
  ]);
  replace(element, instead.length > 0 && [h("p", { class: "quiet" }, "Search instead"), instead.map((other) => choice(other))],
    without.length > 0 && [h("p", { class: "quiet" }, "Without a condition"), without.map((other) => choice(other, "Remove"))]);
}

/** The first searches, without those that find nothing. `number`: the pushes that match; null if that is not counted, as in a large inbox. */
async function withResults(others) {
  const counted = await Promise.all(others.slice(0, MAX_SUGGESTED).map(async (other) => ({ ...other, number: await get("/pushes", { ...filterOf(other.q), limit: 0 }).then((page) => page.matched, () => 0) })));
  return counted.filter((other) => other.number !== 0);
}

function choice({ q, text, label = text, number }, act = null) {
  const found = number === null ? "" : ` ${count(number)}`;
  return button([visible(label, { limit: 60 }), h("span", { class: "quiet" }, found)], () => go({ q }), { class: "small", "aria-label": act && `${act} ${label}${found}` });
}
