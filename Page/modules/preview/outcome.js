// The response in one line below a preview.
import { h } from "../dom.js";
import { story } from "../explain.js";
import { icon } from "../icons.js";
import { visible } from "../visible.js";

export function outcomeLine(record) {
  return h("p", { class: `outcome-line is-${record.outcome}` }, icon(record.outcome), h("span", {}, visible(story(record))));
}
