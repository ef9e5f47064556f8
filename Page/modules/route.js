// The state of the page, which is stored in the URL so that links reproduce it.
import { isSeq, seqOf } from "./seq.js";

export const VIEWS = ["inbox", "overview", "findings", "connections", "runs", "devices", "faults", "connect"];
export const TABS = ["preview", "payload", "headers", "auth", "verdict", "timeline"];

/**
 * The current state. `push` is a seq, null, or the text of a link until its push is loaded; `link` is what the address
 * shows for it, see `linkOf`. `run` is the id of the run whose report is shown. `sort` is a field of the API, with `-` in front for descending order; empty for the newest first.
 */
export const shown = { view: "inbox", q: "", push: null, link: null, tab: "preview", fold: false, sort: "", run: null };

// The push of each link seen, so that going back needs no request.
const seqs = new Map();

const observers = [];

// The views that can be shown; the first is shown without a view in the address. A file has its state after `#`.
let views = VIEWS;
let isInFile = false;

/** Registers `callback(now, before)`, called after each change. */
export function onChange(callback) {
  observers.push(callback);
}

/** Changes the state; `changes` are members of `shown`. Opening a view or push adds a history entry. */
export function go(changes, { quietly = false } = {}) {
  const before = { ...shown };
  Object.assign(shown, changes);
  if (changes.push !== undefined && changes.link === undefined && changes.push !== before.push) shown.link = null;
  if (shown.link !== null && isSeq(shown.push)) seqs.set(shown.link, shown.push);
  const names = Object.keys(shown).filter((name) => shown[name] !== before[name]);
  if (!names.length) return;
  const steps = names.some((name) => ["view", "q", "sort", "run"].includes(name)) || (before.push === null) !== (shown.push === null);
  history[steps && !quietly ? "pushState" : "replaceState"](null, "", address());
  notify(before);
}

function notify(before) {
  for (const callback of observers) callback(shown, before);
}

function address() {
  const query = new URLSearchParams();
  if (shown.view !== views[0]) query.set("view", shown.view);
  if (shown.view === "runs" && shown.run !== null) query.set("run", shown.run);
  if (shown.q) query.set("q", shown.q);
  if (shown.fold) query.set("fold", "1");
  if (shown.sort) query.set("sort", shown.sort);
  if (shown.push !== null) setLink(query, shown.link ?? String(shown.push));
  if (shown.push !== null && shown.tab !== "preview") query.set("tab", shown.tab);
  const text = query.toString();
  if (isInFile) return `#${text}`;
  return text ? `/?${text}` : "/";
}

/** The link to a push: its apns-id, the number of the attempt if there are several, and its seq: `9d32… 2 #4711`. */
export function linkOf({ id, attempt = null, seq }) {
  return [id, attempt, `#${seq}`].filter((part) => part !== null).join(" ");
}

/** The parts of a link; of one that is only a seq, the seq is its `id`. */
export function partsOf(link) {
  const [id, ...others] = link.split(" ");
  const seq = others.find((part) => part.startsWith("#"))?.slice(1);
  return { id, attempt: others.find((part) => !part.startsWith("#")) ?? null, seq: seqOf(seq) };
}

function setLink(query, link) {
  const { id, attempt, seq } = partsOf(link);
  query.set("push", id);
  if (attempt !== null) query.set("attempt", attempt);
  if (seq !== null) query.set("seq", seq);
}

// The id of the inbox, once it is known, and that of the link which opened the page.
let inbox = null;
let linkedInbox = null;

/** Notes the id of the inbox; returns whether the page was opened by a link to a push of another one. */
export function noteInbox(id) {
  inbox = id ?? null;
  return inbox !== null && linkedInbox !== null && linkedInbox !== inbox;
}

/** The absolute URL of the push that is shown. It names the inbox, because others have pushes with the same number. */
export function linkToPush() {
  const query = new URLSearchParams();
  setLink(query, shown.link ?? String(shown.push));
  if (inbox !== null) query.set("inbox", inbox);
  if (isInFile) return `${location.href.split("#")[0]}#view=inbox&${query}`;
  return `${location.origin}/?${query}`;
}

function read() {
  const query = new URLSearchParams(isInFile ? location.hash.slice(1) : location.search);
  const one = (name, of, otherwise) => (of.includes(query.get(name)) ? query.get(name) : otherwise);
  const id = query.get("push")?.trim() || null;
  if (id !== null && query.has("inbox")) linkedInbox = query.get("inbox");
  const seq = seqOf(id);
  const attempt = /^[0-9]{1,15}$/.test(query.get("attempt") ?? "") ? query.get("attempt") : null;
  const ofLink = seqOf(query.get("seq"));
  const link = id === null || seq !== null ? null : [id, attempt, ofLink && `#${ofLink}`].filter(Boolean).join(" ");
  Object.assign(shown, {
    view: one("view", views, views[0]), q: query.get("q") ?? "", tab: one("tab", TABS, "preview"),
    fold: query.get("fold") === "1", sort: /^-?[a-z_]{2,20}$/.test(query.get("sort") ?? "") ? query.get("sort") : "",
    link, push: seq ?? seqs.get(link) ?? link, run: runOf(query.get("run")),
  });
  const linked = isInFile ? null : /^#\/runs(?:\/([^/]*))?$/.exec(location.hash);
  if (!linked) return;
  Object.assign(shown, { view: "runs", run: runOf(decoded(linked[1] ?? "")), push: null, link: null });
  history.replaceState(history.state, "", address());
}

/** The id of a run; that of a view of several servers has the name of the inbox in front: `load_1:r3`. */
function runOf(text) {
  return /^[\w.:-]{1,200}$/.test(text ?? "") ? text : null;
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return null; // It is not a link of ours.
  }
}

/** Reads the URL, now and after back or forward navigation. `views` are those of a file, which has no server. */
export function start({ views: ofFile = null } = {}) {
  isInFile = ofFile !== null;
  views = ofFile ?? VIEWS;
  if (isInFile) shown.view = views[0];
  read();
  // A link to a run may be opened in a tab that shows the page: then only the fragment changes.
  for (const event of isInFile ? ["popstate"] : ["popstate", "hashchange"]) {
    addEventListener(event, () => {
      const before = { ...shown };
      read();
      notify(before);
    });
  }
}
