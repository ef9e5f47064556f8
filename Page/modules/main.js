// Connects the modules: shows the view of the URL and dispatches server events.
import * as api from "./api.js";
import { Bar } from "./bar.js";
import { throttled } from "./dom.js";
import { early, FIRST_ROWS } from "./early.js";
import { count } from "./format.js";
import { Groups } from "./groups.js";
import { Inbox } from "./inbox.js";
import { Reachability } from "./reachability.js";
import * as serverClock from "./clock.js";
import * as keys from "./keys.js";
import { LateDetail } from "./latedetail.js";
import { Live } from "./live.js";
import { go, noteInbox, shown, start as startRoute, TABS } from "./route.js";
import { showMessage } from "./copy.js";
import { StoreState } from "./storestate.js";
import * as theme from "./theme.js";
import { showViews } from "./views.js";

api.takeToken();
theme.start();
startRoute();

let tokenRequest = null;
api.onTokenNeeded((wasWrong) => {
  tokenRequest ??= keys.askForToken(wasWrong).then((token) => {
    if (token !== null) api.setToken(token);
    tokenRequest = null;
  });
  return tokenRequest;
});

const RETRY = 2000; // milliseconds

const actions = {
  open: (push, link = null) => go({ view: "inbox", push, link, tab: shown.push === null ? "preview" : shown.tab }),
  openLink: (link) => go({ view: "inbox", push: link, link }),
  // The push of a link was found, or the link of a push: the address changes, the view does not.
  found: (push, link) => (shown.push === push || shown.push === link) && go({ push, link }, { quietly: true }),
  close: () => go({ push: null }),
  tab: (tab) => go({ tab }),
  search: (q) => go({ view: "inbox", push: null, q }),
  addCondition: (text) => go({ view: "inbox", q: shown.q.split(" ").includes(text) ? shown.q : `${shown.q} ${text}`.trim() }),
};

const detail = new LateDetail();
const inbox = new Inbox(detail, actions, { onPause: showLive, onNew: () => !inbox.isPaused && groups.refresh(), onClock: () => readClock() });
const panels = {}; // of the views other than the list, once they are loaded
const bar = new Bar(document.getElementById("bar"), document.getElementById("banner"), {
  pause: () => inbox.togglePause(), theme: changeTheme, keys: keys.showSheet, compose: () => detail.compose(), reload: () => loadFaults(),
});
const groups = new Groups(document.getElementById("groups"), (field) => {
  go({ view: "inbox" });
  inbox.search.begin(field);
});
const main = document.getElementById("main");

function changeTheme() {
  showMessage(`Theme: ${theme.next()}`);
}

// Events

const reachability = new Reachability();
let connectionState = "lost";
function showLive() {
  bar.setLive(inbox.isPaused ? "paused" : connectionState, inbox.waiting);
  const number = inbox.waiting + inbox.unseen;
  document.title = number > 0 ? `(${count(number)}) apns-mock` : "apns-mock";
}

const refreshInbox = throttled(() => inbox.refresh(), 500);
const refreshFaults = throttled(() => loadFaults(), 1500);
const loadFaults = () => panels.faults?.load();
const handlers = {
  "push": (record) => inbox.onEvent("push", record),
  "push.updated": (record) => inbox.onEvent("push.updated", record),
  "connection": () => shown.view === "connections" && panels.connections?.refresh(),
  "profile": loadFaults,
  "rule": loadFaults,
  "reset": ({ reset }) => {
    if (reset.includes("inbox")) refreshInbox();
    if (reset.includes("clock")) readClock();
    loadFaults();
  },
  "deleted": () => refreshInbox(),
  "clock": () => readClock(),
  "gap": () => refreshInbox(),
};
const live = new Live((event, data) => {
  handlers[event]?.(data);
  if (event !== "push" && event !== "push.updated") return;
  if (shown.view === "faults") refreshFaults();
  else if (shown.view === "inbox") detail.refreshOverview();
  else panels[shown.view]?.refresh?.();
}, (now) => {
  connectionState = now;
  reachability.set(now);
  showLive();
  if (now === "live" && early.isUsed) {
    early.isUsed = false;
    started.then(catchUp);
  }
});
inbox.follow = (q) => live.follow(q);

addEventListener("visibilitychange", () => {
  if (document.hidden) return;
  groups.refresh();
  inbox.pageShown();
});
setInterval(() => !document.hidden && !inbox.isPaused && groups.refresh(), 5000);
const readClock = throttled(() => serverClock.readClock().then((clock) => {
  bar.setClock(clock);
  inbox.list.refreshTimes();
}, () => {}), 500);
setInterval(() => !document.hidden && readClock(), 10000);

keys.start({
  "j": () => inbox.move(1), "k": () => inbox.move(-1), "ArrowDown": () => inbox.move(1), "ArrowUp": () => inbox.move(-1),
  "Enter": () => inbox.openSelected(), "/": () => { go({ view: "inbox" }); inbox.search.focus(); },
  "n": () => detail.compose(), "y": () => detail.copyID(), ".": () => inbox.togglePause(), "t": changeTheme, "?": keys.showSheet,
  "[": () => inbox.openAttempt(-1), "]": () => inbox.openAttempt(1), "x": () => inbox.toggleSelected(), "c": () => inbox.toolbar.compareSelected(), "e": () => detail.edit(inbox.list.selected),
  "escape": () => inbox.reduceSelection() || (shown.push !== null ? actions.close() : go({ view: "inbox" })),
  ...Object.fromEntries(TABS.map((tab, index) => [String(index + 1), () => shown.push !== null && actions.tab(tab)])),
});

const show = showViews(main, panels, inbox);
// The rows come first: on a slow network everything else would delay them.
const started = inbox.start();
const isListAlone = shown.view === "inbox" && shown.push === null;
(isListAlone ? started : Promise.resolve()).then(async () => {
  const views = (await loadLater()).createViews(actions, bar);
  Object.assign(panels, views.panels);
  detail.use(views.detail);
  show();
  loadFaults();
  panels.connect.load();
});
started.then(() => {
  groups.load();
  readClock();
  api.get("/status").then(({ inbox: { id } }) => noteInbox(id) && bar.showOtherInbox(), () => {});
  new StoreState().start().catch(() => {});
});

/** Adds what arrived or ended between the rows that were requested early and the first event. */
async function catchUp() {
  const page = await api.get("/pushes", FIRST_ROWS).catch(() => null);
  if (page === null || shown.q || shown.fold || shown.sort) return; // Another list was loaded since.
  const { rows } = inbox.records;
  if (page.next !== null && !page.items.some((record) => rows.has(record.seq))) return refreshInbox();
  for (const record of page.items.reverse()) {
    const known = rows.get(record.seq);
    if (!known) inbox.onEvent("push", record);
    else if (known.outcome !== record.outcome) inbox.onEvent("push.updated", record);
  }
}

async function loadLater() {
  for (;;) {
    try {
      return await import("./later.js");
    } catch {
      await new Promise((resolve) => setTimeout(resolve, RETRY)); // The server does not respond.
    }
  }
}
