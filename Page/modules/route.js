// What the page shows, and its address: whoever is given the address sees the same.

export const VIEWS = ["inbox", "connections", "devices", "faults", "connect"];
export const TABS = ["preview", "payload", "headers", "auth", "verdict", "timeline"];

/** What is shown now. `push` is a seq or null. */
export const shown = { view: "inbox", q: "", push: null, tab: "preview", fold: false };

const followers = [];

/** Calls `act(now, before)` after each change. */
export function onChange(act) {
  followers.push(act);
}

/** Shows something else; `changes` are members of `shown`. Opening something makes an entry for the back button. */
export function go(changes, { quietly = false } = {}) {
  const before = { ...shown };
  Object.assign(shown, changes);
  const names = Object.keys(shown).filter((name) => shown[name] !== before[name]);
  if (!names.length) return;
  const steps = names.some((name) => name === "view" || name === "q") || (before.push === null) !== (shown.push === null);
  history[steps && !quietly ? "pushState" : "replaceState"](null, "", address());
  tell(before);
}

function tell(before) {
  for (const act of followers) act(shown, before);
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

/** Reads the address, now and whenever back or forward change it. */
export function start() {
  read();
  addEventListener("popstate", () => {
    const before = { ...shown };
    read();
    tell(before);
  });
}
