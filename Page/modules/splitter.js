// A handle that changes the width of the list.
import { h } from "./dom.js";
import { store, stored } from "./settings.js";

const MIN = 300;
const MIN_REST = 320; // what remains for the details
const STEP = 32; // pixels for an arrow key

/** Returns the handle at the right of `pane`. */
export function splitter(pane) {
  const handle = h("div", { class: "splitter", role: "separator", tabindex: "0", "aria-orientation": "vertical", "aria-label": "Width of the list", title: "Drag, or use the arrow keys" });
  const set = (width) => {
    const space = pane.parentElement?.clientWidth || innerWidth;
    const limited = Math.round(Math.max(MIN, Math.min(space - MIN_REST, width)));
    pane.style.setProperty("--list-width", `${limited}px`);
    store("list-width", limited);
    report();
  };
  const report = () => {
    handle.setAttribute("aria-valuenow", Math.round(pane.getBoundingClientRect().width));
    handle.setAttribute("aria-valuemin", MIN);
    handle.setAttribute("aria-valuemax", Math.max(MIN, innerWidth - MIN_REST));
  };
  const kept = stored("list-width", null);
  if (Number.isFinite(kept)) pane.style.setProperty("--list-width", `${Math.max(MIN, kept)}px`);
  new ResizeObserver(report).observe(pane);
  report();
  handle.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -STEP, ArrowRight: STEP }[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    set(pane.getBoundingClientRect().width + step);
  });
  handle.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    const offset = pane.getBoundingClientRect().right - event.clientX;
    const move = (to) => set(to.clientX + offset - pane.getBoundingClientRect().left);
    addEventListener("pointermove", move);
    addEventListener("pointerup", () => removeEventListener("pointermove", move), { once: true });
  });
  return handle;
}
