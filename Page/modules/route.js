// The state of the page, which is stored in the URL so that links reproduce it.

export const VIEWS = ["inbox", "overview", "findings", "connections", "devices", "faults", "connect"];
export const TABS = ["preview", "payload", "headers", "auth", "verdict", "timeline"];

/** The current state. `push` is a seq or null. */
export const shown = { view: "inbox", q: "", push: null, tab: "preview", fold: false };

const observers = [];

/** Registers `callback(now, before)`, called after each change. */
export function onChange(callback) {
  observers.push(callback);
}

/** Changes the state; `changes` are members of `shown`. Opening a view or push adds a history entry. */
export function go(changes, { quietly = false } = {}) {
  const before = { ...shown };
  Object.assign(shown, changes);
  const names = Object.keys(shown).filter((name) => shown[name] !== before[name]);
  if (!names.length) return;
  const steps = names.some((name) => name === "view" || name === "q") || (before.push === null) !== (shown.push === null);
  history[steps && !quietly ? "pushState" : "replaceState"](null, "", address());
  notify(before);
}

function notify(before) {
  for (const callback of observers) callback(shown, before);
}

function address() {
  const query = new URLSearchParams();
  if (shown.view !== "inbox") query.set("view", shown.view);
  if (shown.q) query.set("q", shown.q);
  if (shown.fold) query.set("fold", "1");
  if (shown.push !== null) query.set("push", shown.push);
  if (shown.push !== null && shown.tab !== "preview") query.set("tab", shown.tab);
  const text = query.toString();
  return text ? `/?${text}` : "/";
}

function read() {
  const query = new URLSearchParams(location.search);
  const one = (name, of, otherwise) => (of.includes(query.get(name)) ? query.get(name) : otherwise);
  const push = Number.parseInt(query.get("push") ?? "", 10);
  Object.assign(shown, {
    view: one("view", VIEWS, "inbox"), q: query.get("q") ?? "", tab: one("tab", TABS, "preview"),
    fold: query.get("fold") === "1", push: Number.isSafeInteger(push) && push > 0 ? push : null,
  });
}

/** Reads the URL, now and after back or forward navigation. */
export function start() {
  read();
  addEventListener("popstate", () => {
    const before = { ...shown };
    read();
    notify(before);
  });
}
