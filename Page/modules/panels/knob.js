// A parameter of a profile: a slider if its range is limited, else a field.
import { h } from "../dom.js";
import { visible } from "../visible.js";

/** `turn(name, value)` is called while the value changes. */
export function knobRow(knob, turn) {
  const id = `knob-${knob.name}`;
  const isNumber = ["probability", "int", "float", "number"].includes(knob.type);
  const [min, max] = knob.type === "probability" ? [0, 1] : [knob.min, knob.max];
  const field = h("input", { id, class: "knob-value", type: isNumber ? "number" : "text", step: stepOf(knob), min, max });
  field.value = knob.value;
  const parts = [];
  const isSliding = isNumber && typeof min === "number" && typeof max === "number" && max - min <= 1000;
  let slider = null;
  if (isSliding) {
    slider = h("input", { type: "range", class: "knob-slider", min, max, step: stepOf(knob), "aria-label": `${knob.name}, slider` });
    slider.value = knob.value;
    slider.addEventListener("input", () => {
      field.value = slider.value;
      turn(knob.name, Number(slider.value));
    });
    parts.push(slider);
  }
  field.addEventListener("change", () => {
    if (slider) slider.value = field.value;
    turn(knob.name, isNumber ? Number(field.value) : field.value);
  });
  parts.push(field);
  return h("div", { class: "knob" }, h("label", { for: id, class: "mono" }, visible(knob.name)), h("div", { class: "knob-parts" }, parts),
    h("p", { class: "quiet" }, knob.help ? [visible(knob.help), ". "] : "", `Default ${knob.default}.`));
}

function stepOf(knob) {
  return knob.type === "probability" ? "0.01" : knob.type === "int" ? "1" : knob.type === "float" || knob.type === "number" ? "any" : null;
}
