// Makes a group of controls one tab stop. Arrow keys move within it.

const CONTROLS = "button, a[href], summary, select, input";

/** `keys` are the names of the keys that move back and forward. New and hidden controls are noticed. */
export function roving(group, keys = [["ArrowLeft", "ArrowUp"], ["ArrowRight", "ArrowDown"]]) {
  let current = null;
  const controls = () => [...group.querySelectorAll(CONTROLS)].filter((one) => !one.disabled && !one.closest("[hidden], .menu, details:not([open]) > :not(summary)"));
  const settle = () => {
    const all = controls();
    // A control that was replaced by one like it keeps the tab stop.
    if (!all.includes(current)) current = all.find((one) => one.getAttribute("aria-current") === "true") ?? all[0] ?? null;
    for (const one of all) {
      const index = one === current ? "0" : "-1";
      if (one.getAttribute("tabindex") !== index) one.setAttribute("tabindex", index);
    }
  };
  group.addEventListener("focusin", (event) => {
    if (controls().includes(event.target)) current = event.target;
    settle();
  });
  group.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey || event.defaultPrevented) return;
    // The arrow keys of a list of options choose one of them.
    if (event.target.tagName === "SELECT" && event.key.startsWith("Arrow")) return;
    const all = controls();
    const here = all.indexOf(event.target);
    if (here < 0) return;
    const step = keys[0].includes(event.key) ? -1 : keys[1].includes(event.key) ? 1 : 0;
    const next = step ? all[(here + step + all.length) % all.length] : event.key === "Home" ? all[0] : event.key === "End" ? all.at(-1) : null;
    if (!next) return;
    event.preventDefault();
    event.stopPropagation();
    next.focus();
  });
  new MutationObserver(settle).observe(group, { childList: true, subtree: true, attributes: true, attributeFilter: ["disabled", "hidden", "open"] });
  settle();
  return group;
}
