// Connects the modules: shows the view of the URL and dispatches server events.
import * as api from "./api.js";
import { Bar } from "./bar.js";
import { throttled } from "./dom.js";
import { early, FIRST_ROWS } from "./early.js";
import { count } from "./format.js";
import { Inbox } from "./inbox.js";
import { Reachability } from "./reachability.js";
import * as serverClock from "./clock.js";
import * as keys from "./keys.js";
import { LateDetail } from "./latedetail.js";
import { Live } from "./live.js";
import { noteInbox, shown, start as startRoute } from "./route.js";
import { recount } from "./snapshot.js";
import { StoreState } from "./storestate.js";
import * as theme from "./theme.js";
import { actions, changeTheme, showViews } from "./views.js";

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

const detail = new LateDetail();
const inbox = new Inbox(detail, actions, { onPause: showLive, onClock: () => readClock() });
const panels = {}; // of the views other than the list, once they are loaded
const bar = new Bar(document.getElementById("bar"), document.getElementById("banner"), {
  pause: () => inbox.togglePause(), theme: changeTheme, keys: keys.showSheet, compose: () => detail.compose(), reload: () => loadFaults(),
});
const main = document.getElementById("main");

// Events

const reachability = new Reachability();
let connectionState = "lost";
let wasLive = false;
function showLive() {
  bar.setLive(inbox.isPaused ? "paused" : connectionState, inbox.waiting);
  const number = inbox.waiting + inbox.unseen;
  document.title = number > 0 ? `(${count(number)}) apns-mock` : "apns-mock";
}

// What was deleted leaves the list and the sidebar at once, also during a pause.
const afterDeletion = throttled(() => inbox.refresh({ isForced: true }), 500);
const refreshFaults = throttled(() => loadFaults(), 1500);
const loadFaults = () => panels.faults?.load();
const handlers = {
  "push": (record) => inbox.onEvent("push", record),
  "push.updated": (record) => inbox.onEvent("push.updated", record),
  "connection": () => shown.view === "connections" && panels.connections?.refresh(),
  "profile": loadFaults,
  "rule": loadFaults,
  "reset": ({ reset }) => {
    if (reset.includes("inbox")) afterDeletion();
    if (reset.includes("clock")) readClock();
    loadFaults();
    panels[shown.view]?.refresh?.();
  },
  "deleted": afterDeletion,
  "clock": () => readClock(),
  "gap": afterDeletion,
};
const live = new Live((event, data) => {
  handlers[event]?.(data);
  if (event !== "push" && event !== "push.updated") return;
  if (shown.view === "faults") refreshFaults();
  else panels[shown.view]?.refresh?.();
}, (now) => {
  const isBack = now === "live" && connectionState !== "live" && wasLive;
  wasLive ||= now === "live";
  connectionState = now;
  reachability.set(now);
  showLive();
  if (now === "live" && inbox.hasFailed) inbox.reload();
  if (now === "live") detail.retry();
  if (isBack) panels[shown.view]?.load?.();
  if (now === "live" && early.isUsed) {
    early.isUsed = false;
    started.then(catchUp);
  }
});
inbox.follow = (q) => live.follow(q);

addEventListener("visibilitychange", () => {
  if (document.hidden) return;
  inbox.pageShown();
});
setInterval(recount, 5000);
const readClock = throttled(() => serverClock.readClock().then((clock) => {
  bar.setClock(clock);
  inbox.list.refreshTimes();
  drawDay();
}, () => {}), 500);
setInterval(() => !document.hidden && readClock(), 10000);

let drawnDay = new Date().toDateString();
/** Draws times with or without their date, after the day of the server's clock has changed. */
function drawDay() {
  const day = new Date(serverClock.serverNow()).toDateString();
  if (day === drawnDay) return;
  drawnDay = day;
  inbox.list.drawAgain();
  detail.redraw();
}

const show = showViews(main, panels, inbox, { more: {
  "n": () => detail.compose(), ".": () => inbox.togglePause(), "e": () => shown.view === "inbox" && detail.edit(inbox.list.selected),
} });
// The rows come first: on a slow network everything else would delay them.
const started = inbox.start();
const isListAlone = shown.view === "inbox" && shown.push === null;
(isListAlone ? started : Promise.resolve()).then(async () => {
  const views = (await loadLater()).createViews(bar);
  Object.assign(panels, views.panels);
  detail.use(views.detail);
  show();
  loadFaults();
  panels.connect.load();
});
started.then(() => {
  readClock();
  api.get("/status").then(({ inbox: { id } }) => noteInbox(id) && bar.showOtherInbox(), () => {});
  new StoreState().start().catch(() => {});
});

/** Adds what arrived or ended between the rows that were requested early and the first event. */
async function catchUp() {
  const page = await api.get("/pushes", FIRST_ROWS).catch(() => null);
  if (page === null || shown.q || shown.fold || shown.sort) return; // Another list was loaded since.
  const { rows } = inbox.records;
  if (page.next !== null && !page.items.some((record) => rows.has(record.seq))) return inbox.refresh();
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
