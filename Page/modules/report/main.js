// The report of a run in one file: the web UI over embedded records, without what needs a server.
import { answerFrom, get } from "../api.js";
import { showMessage } from "../copy.js";
import { Detail } from "../detail.js";
import { button, h, replace } from "../dom.js";
import { Groups } from "../groups.js";
import { icon } from "../icons.js";
import { Inbox } from "../inbox.js";
import * as keys from "../keys.js";
import { ConnectionsPanel } from "../panels/connections.js";
import { FindingsPanel } from "../panels/findings.js";
import { OverviewPanel } from "../panels/overview.js";
import { go, shown, start as startRoute, TABS } from "../route.js";
import * as theme from "../theme.js";
import { ReportPanel, showProblem } from "./panel.js";
import { readRecords, Source } from "./source.js";
import { showViews } from "../views.js";

const VIEWS = [["report", "Report"], ["inbox", "Pushes"], ["overview", "Overview"], ["findings", "Findings"], ["connections", "Connections"]];
const main = document.getElementById("main");
const summary = JSON.parse(document.getElementById("summary").textContent);
const records = readRecords();
const source = new Source(records, summary);
answerFrom((path, query) => source.answer(path, query));
theme.start();
startRoute({ views: VIEWS.map(([view]) => view) });

const actions = {
  open: (push, link = null) => go({ view: "inbox", push, link, tab: shown.push === null ? "preview" : shown.tab }),
  openLink: (link) => go({ view: "inbox", push: link, link }),
  found: (push, link) => (shown.push === push || shown.push === link) && go({ push, link }, { quietly: true }),
  close: () => go({ push: null }),
  tab: (tab) => go({ tab }),
  search: (q) => go({ view: "inbox", push: null, q }),
  addCondition: (text) => go({ view: "inbox", q: shown.q.split(" ").includes(text) ? shown.q : `${shown.q} ${text}`.trim() }),
};
const nothing = h("p", { class: "notice" }, "The report contains no push.");
const detail = new Detail(actions, nothing, new OverviewPanel());
const inbox = new Inbox(detail, actions, { onPause: () => {}, onNew: () => {}, onClock: () => {} });
inbox.follow = () => {};
const report = new ReportPanel(summary, actions);
const panels = { report, overview: new OverviewPanel(), findings: new FindingsPanel(actions), connections: new ConnectionsPanel(actions) };
const groups = new Groups(document.getElementById("groups"), (field) => {
  go({ view: "inbox" });
  inbox.search.begin(field);
}, VIEWS);

replace(document.getElementById("bar"), h("h1", { class: "brand" }, button([icon("bell"), "apns-mock report"], () => go({ view: "report", q: "", push: null }), { class: "plain" })),
  h("span", { class: "bar-space" }),
  h("button", { type: "button", class: "plain", title: "Theme (t)", "aria-label": "Change the theme", on: { click: changeTheme } }, icon("theme")),
  h("button", { type: "button", class: "plain", title: "Keyboard shortcuts (?)", "aria-label": "Keyboard shortcuts", on: { click: keys.showSheet } }, "?"));

function changeTheme() {
  showMessage(`Theme: ${theme.next()}`);
}

keys.start({
  "j": () => inbox.move(1), "k": () => inbox.move(-1), "ArrowDown": () => inbox.move(1), "ArrowUp": () => inbox.move(-1),
  "Enter": () => inbox.openSelected(), "/": () => { go({ view: "inbox" }); inbox.search.focus(); },
  "y": () => detail.copyID(), "t": changeTheme, "?": keys.showSheet,
  "[": () => inbox.openAttempt(-1), "]": () => inbox.openAttempt(1), "x": () => inbox.toggleSelected(), "c": () => inbox.toolbar.compareSelected(),
  "escape": () => inbox.reduceSelection() || (shown.push !== null ? actions.close() : go({ view: "report" })),
  ...Object.fromEntries(TABS.map((tab, index) => [String(index + 1), () => shown.push !== null && actions.tab(tab)])),
});

showViews(main, panels, inbox);
records.then(async () => {
  inbox.start();
  groups.load();
  report.drawChart(await get("/stats", { buckets: 90 }));
  document.body.dataset.state = "ready";
}).catch((error) => showProblem(main, `The records of this report cannot be read: ${error.message}`));
