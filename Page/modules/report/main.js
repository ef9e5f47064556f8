// The report of a run in one file: the web UI over embedded records, without what needs a server.
import { answerFrom } from "../api.js";
import { Detail } from "../detail.js";
import { button, h, replace } from "../dom.js";
import { icon } from "../icons.js";
import { Inbox } from "../inbox.js";
import * as keys from "../keys.js";
import { ConnectionsPanel } from "../panels/connections.js";
import { FindingsPanel } from "../panels/findings.js";
import { OverviewPanel } from "../panels/overview.js";
import { go, start as startRoute } from "../route.js";
import * as theme from "../theme.js";
import { ReportPanel, showProblem } from "./panel.js";
import { onSnapshot, snapshot } from "../snapshot.js";
import { readRecords, Source } from "./source.js";
import { actions, changeTheme, showViews } from "../views.js";

const VIEWS = [["report", "Report"], ["inbox", "Pushes"], ["overview", "Overview"], ["findings", "Findings"], ["connections", "Connections"]];
const main = document.getElementById("main");
const summary = readSummary();
if (summary) show(summary);
else showProblem(main, "This report cannot be read: the file is cut off or was changed. Write the report again.");

/** Shows the report, and the records when they are read. */
function show(summary) {
  const records = readRecords().catch(() => {
    throw new Error("The pushes of this report cannot be read: the file is cut off or was changed. Write the report again.");
  });
  const source = new Source(records, summary);
  answerFrom((path, query) => source.answer(path, query));
  theme.start();
  startRoute({ views: VIEWS.map(([view]) => view) });

  const nothing = h("p", { class: "notice" }, "The report contains no push.");
  const overview = new OverviewPanel();
  const inbox = new Inbox(new Detail(actions, nothing, overview), actions, { onPause: () => {}, onClock: () => {} });
  inbox.follow = () => {};
  const report = new ReportPanel(summary, actions);
  const panels = { report, overview, findings: new FindingsPanel(actions), connections: new ConnectionsPanel(actions) };
  replace(document.getElementById("bar"), h("h1", { class: "brand" }, button([icon("bell"), "apns-mock report"], () => go({ view: "report", q: "", push: null }), { class: "plain" })),
    h("span", { class: "bar-space" }),
    h("button", { type: "button", class: "plain", title: "Theme (t)", "aria-label": "Change the theme", on: { click: changeTheme } }, icon("theme")),
    h("button", { type: "button", class: "plain", title: "Keyboard shortcuts (?)", "aria-label": "Keyboard shortcuts", on: { click: keys.showSheet } }, "?"));

  showViews(main, panels, inbox, { views: VIEWS, home: "report" });
  onSnapshot(() => {
    report.showProblem(snapshot.counts ? null : snapshot.failure);
    if (!snapshot.counts) return;
    report.drawChart(snapshot.counts.all);
    document.body.dataset.state = "ready";
  });
  records.then(() => inbox.start()).catch((error) => showProblem(main, error.message));
}

/** Returns the summary that is embedded in the file; null if the file is cut off. */
function readSummary() {
  try {
    return JSON.parse(document.getElementById("summary").textContent);
  } catch {
    return null;
  }
}
