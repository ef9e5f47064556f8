// A parameter of a profile: a slider if its range is limited, else a field.
import { h } from "../dom.js";
import { visible } from "../visible.js";

/** `onChange(name, value)` is called while the value changes. */
export function parameterRow(parameter, onChange) {
  const id = `parameter-${parameter.name}`;
  const isNumber = ["probability", "int", "float", "number"].includes(parameter.type);
  const [min, max] = parameter.type === "probability" ? [0, 1] : [parameter.min, parameter.max];
  const field = h("input", { id, class: "parameter-value", type: isNumber ? "number" : "text", step: stepOf(parameter), min, max });
  field.value = parameter.value;
  const parts = [];
  const isSliding = isNumber && typeof min === "number" && typeof max === "number" && max - min <= 1000;
  let slider = null;
  if (isSliding) {
    slider = h("input", { type: "range", class: "parameter-slider", min, max, step: stepOf(parameter), "aria-label": `${parameter.name}, slider` });
    slider.value = parameter.value;
    slider.addEventListener("input", () => {
      field.value = slider.value;
      onChange(parameter.name, Number(slider.value));
    });
    parts.push(slider);
  }
  field.addEventListener("change", () => {
    if (slider) slider.value = field.value;
    onChange(parameter.name, isNumber ? Number(field.value) : field.value);
  });
  parts.push(field);
  return h("div", { class: "parameter" }, h("label", { for: id, class: "mono" }, visible(parameter.name)), h("div", { class: "parameter-parts" }, parts),
    h("p", { class: "quiet" }, parameter.help ? [visible(parameter.help), ". "] : "", `Default ${parameter.default}.`));
}

function stepOf(parameter) {
  return parameter.type === "probability" ? "0.01" : parameter.type === "int" ? "1" : parameter.type === "float" || parameter.type === "number" ? "any" : null;
}
