// A button that opens a menu below it.
import { button, h } from "./dom.js";

/** Returns `{element, toggle, menu, show(isOpen)}`. `onOpen()` is called before the menu is shown. */
export function menuButton(content, { title, name, label = null, onOpen }, ...children) {
  const menu = h("div", { class: "menu", hidden: true, role: "group", "aria-label": name }, ...children);
  const show = (isOpen) => {
    if (isOpen === !menu.hidden) return;
    if (isOpen) onOpen?.();
    menu.hidden = !isOpen;
    toggle.setAttribute("aria-expanded", String(isOpen));
  };
  const toggle = button(content, () => show(menu.hidden), { class: "small", "aria-expanded": "false", "aria-label": label, title });
  const element = h("div", { class: "menu-anchor" }, toggle, menu);
  element.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || menu.hidden) return;
    event.stopPropagation();
    show(false);
    toggle.focus();
  });
  element.addEventListener("focusout", (event) => event.relatedTarget && !element.contains(event.relatedTarget) && show(false));
  document.addEventListener("pointerdown", (event) => element.contains(event.target) || show(false));
  return { element, toggle, menu, show };
}
