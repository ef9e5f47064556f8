// Creates elements. External text becomes only text nodes or attribute values; nothing here parses HTML.

/**
 * Creates an element. `props`: `class`, `on` ({click: …}), `data` ({seq: 1}), `style` ({top: "1px"}); everything else is an
 * attribute, omitted if false, null or undefined. Children that are null or false are omitted.
 */
export function h(tag, props = {}, ...children) {
  return fill(document.createElement(tag), props, children);
}

/** Creates an SVG element. */
export function svg(tag, props = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), props, children);
}

function fill(element, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === false || value === null || value === undefined) continue;
    if (name === "on") for (const [event, action] of Object.entries(value)) element.addEventListener(event, action);
    else if (name === "data") Object.assign(element.dataset, value);
    else if (name === "style") for (const [key, text] of Object.entries(value)) element.style.setProperty(key, text);
    else element.setAttribute(name, value === true ? "" : value);
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) append(element, child);
    else element.append(child instanceof Node ? child : String(child));
  }
}

// What a pointer presses. If it were replaced before the release, the browser would report no click.
let pressed = null;
// What replaces the contents of elements at the release.
const waiting = new Map();

addEventListener("pointerdown", (event) => { pressed = event.target.closest?.("a, button, input, label, summary") ?? null; }, true);
for (const end of ["pointerup", "pointercancel", "blur"]) {
  addEventListener(end, (event) => {
    if (pressed === null || (end === "blur" && event.target !== window)) return;
    pressed = null;
    // After the click.
    setTimeout(() => {
      for (const [element, children] of [...waiting]) replace(element, ...children);
    }, 0);
  }, true);
}

/** Replaces the content of `element` by `children`; while a pointer presses something in it that can be clicked, only at the release. */
export function replace(element, ...children) {
  if (pressed !== null && pressed !== element && element.contains(pressed)) {
    waiting.set(element, children);
    return element;
  }
  waiting.delete(element);
  element.replaceChildren();
  append(element, children);
  return element;
}

/** Returns `action` so that a call does nothing while the promise that an earlier one returned is pending, nor for the second click of a double click on it. */
export function exclusive(action) {
  let isRunning = false;
  let isRequest = false;
  return (event) => {
    if (isRunning || (isRequest && event?.detail > 1)) return;
    const result = action(event);
    if (!(result instanceof Promise)) return;
    isRunning = isRequest = true;
    const end = () => { isRunning = false; };
    result.then(end, end);
  };
}

/** Creates a button. If `action` returns a promise, a double click acts once. */
export function button(label, action, props = {}) {
  return h("button", { type: "button", ...props, on: { click: exclusive(action) } }, label);
}

/**
 * Creates a table that scrolls sideways. `names`: the headers of the columns; `rows`: lists of cells, or elements. `kind` and `box` are classes
 * of the table and of what scrolls.
 */
export function table(label, names, rows, { kind = "", box = "" } = {}) {
  const cell = (content) => (content instanceof HTMLTableCellElement ? content : h("td", {}, content));
  return h("div", { class: `scroll-x ${box}`.trim(), tabindex: "0", role: "region", "aria-label": label }, h("table", { class: `table ${kind}`.trim() },
    h("thead", {}, h("tr", {}, names.map((name) => (name ? h("th", { scope: "col" }, name) : h("td", {}))))),
    h("tbody", {}, rows.map((row) => (row instanceof Element ? row : h("tr", {}, row.map(cell)))))));
}

/** Returns `action` limited to one call per `wait` milliseconds; the last call is always made. */
export function throttled(action, wait) {
  let timer = null;
  let last = -Infinity;
  return (...args) => {
    clearTimeout(timer);
    const rest = Math.max(0, last + wait - performance.now());
    timer = setTimeout(() => {
      last = performance.now();
      action(...args);
    }, rest);
  };
}

/**
 * Returns the asynchronous `action` so that it runs once at a time. Calls while it runs make one more run after it, which
 * sees what has changed since. Returns a promise of the run that serves the call.
 */
export function oneAtATime(action) {
  let running = null;
  let next = null;
  return function call() {
    if (running === null) {
      running = (async () => action())().finally(() => { running = null; });
      return running;
    }
    next ??= running.catch(() => {}).then(() => {
      next = null;
      return call();
    });
    return next;
  };
}

/** Returns `action` delayed until there was no call for `wait` milliseconds. */
export function settled(action, wait) {
  let timer = null;
  return (...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...args), wait);
  };
}
