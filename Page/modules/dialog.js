// Modal dialogs.
import { button, h } from "./dom.js";
import { icon } from "./icons.js";

let opened = 0;

/** Shows a dialog with `title` and returns it. It is removed when it closes. */
export function openDialog(title, { isWide = false } = {}, ...children) {
  const id = `dialog-${(opened += 1)}`;
  const dialog = h("dialog", { class: isWide ? "dialog is-wide" : "dialog", "aria-labelledby": id },
    h("header", { class: "dialog-head" }, h("h2", { id }, title),
      h("button", { type: "button", class: "plain", "aria-label": "Close", title: "Close (Esc)", on: { click: () => dialog.close() } }, icon("close"))),
    ...children);
  const focused = document.activeElement;
  dialog.addEventListener("close", () => {
    dialog.remove();
    if (focused?.isConnected) focused.focus({ preventScroll: true });
  });
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/** A group of radio buttons. `options` are `[value, label]`; returns the element and a function for the selected value. */
export function choices(legend, name, options, initial) {
  const element = h("fieldset", { class: "choices" }, h("legend", {}, legend), options.map(([value, label]) =>
    h("label", { class: "choice-line" }, h("input", { type: "radio", name, value, checked: value === initial }), h("span", {}, label))));
  return { element, value: () => element.querySelector("input:checked").value };
}

/** Asks before an action. `label` is the text of its button; returns a promise of the answer. */
export function confirmed({ title, question, label }) {
  return new Promise((resolve) => {
    const answer = (isConfirmed) => {
      resolve(isConfirmed);
      dialog.close();
    };
    const dialog = openDialog(title, {}, h("p", { class: "dialog-question" }, question),
      h("p", { class: "dialog-buttons" }, button("Cancel", () => answer(false), { autofocus: true }), button(label, () => answer(true), { class: "danger" })));
    dialog.addEventListener("close", () => resolve(false));
  });
}
