// A list of values with bars for their counts; each value can be selected.
import { h } from "../dom.js";
import { count, counted, pushes } from "../format.js";
import { visible } from "../visible.js";

const SHOWN = 6;

/** `values`: pairs of a value and its count, in descending order. `onSelect(value)` is called for a click. */
export function ranking(title, values, onSelect, tone = null) {
  if (!values.length) return null;
  const highest = values[0][1];
  const rest = values.slice(SHOWN).reduce((sum, [, number]) => sum + number, 0);
  return h("section", { class: "card ranking" }, h("h3", {}, title),
    h("ul", {}, values.slice(0, SHOWN).map(([value, number]) => h("li", {},
      h("button", { type: "button", class: "ranking-line", on: { click: () => onSelect(value) }, title: `Show these pushes` },
        h("span", { class: "ranking-name" }, value === "" ? h("span", { class: "quiet" }, "none") : visible(value, { limit: 120 })),
        h("span", { class: "ranking-count" }, count(number)),
        h("span", { class: "ranking-bar", "aria-hidden": "true" },
          h("span", { class: tone ? `is-${tone(value)}` : "", style: { width: `${Math.max(1.5, (number / highest) * 100)}%` } })))))),
    values.length > SHOWN && h("p", { class: "quiet" }, `${counted(values.length - SHOWN, "more value")} with ${pushes(rest)}`));
}
