// The first screen of a report: the verdict, failed tests with the nearest pushes, lost pushes, findings, what has changed.
import { TimeChart } from "../charts/timechart.js";
import { copy } from "../copy.js";
import { button, h, replace, table } from "../dom.js";
import { count, dayTime, fullTime, pushes as pushCount, tail } from "../format.js";
import { icon } from "../icons.js";
import { go } from "../route.js";
import { quoted } from "../terms.js";
import { visible } from "../visible.js";

const SHOWN_TESTS = 1000;

export class ReportPanel {
  /** `summary` is the JSON of the report; `actions`: `open(seq)`. */
  constructor(summary, actions) {
    this.actions = actions;
    this.chart = new TimeChart({ label: "Pushes over time by outcome", onSelect: (from, until) => go({ view: "inbox", push: null, q: `since:"${new Date(from).toISOString()}" until:"${new Date(until).toISOString()}"` }) });
    this.problem = h("div", { role: "status" });
    const { embedded, pushes } = summary;
    this.element = h("section", { class: "panel report", "aria-label": "Report" },
      this.verdict(summary),
      embedded !== undefined && embedded < pushes && h("p", { class: "notice" }, `This report contains ${count(embedded)} of ${pushCount(pushes)}: first those that were not accepted. The others are counted.`),
      summary.unfollowed > 0 && h("p", { class: "notice" }, `${pushCount(summary.unfollowed)} are only counted, because there are too many: duplicates and delays are those of the others.`),
      summary.failures.length > 0 && this.section(`Failed tests: ${count(summary.failed_tests)}`, summary.failures.map((failure) => this.failure(failure, summary.tests, summary.baseline))),
      this.pushList("Lost", summary.lost, "The last attempt failed, and the push was not sent again."),
      this.baseline(summary.baseline),
      summary.findings.length > 0 && this.section("Findings", summary.findings.map((finding) => this.finding(finding, summary.baseline))),
      this.pushList("Accepted twice", summary.duplicates, "The push was accepted again after it had been accepted: the device shows it twice."),
      h("section", { class: "card" }, h("h3", {}, "Pushes over time"), this.problem, this.chart.element), this.figures(summary), this.tests(summary.tests));
  }

  /** Draws the chart, when the records are there. */
  drawChart(stats) {
    this.chart.draw(stats.timeline);
  }

  /** Shows why the pushes are not counted; null hides it. */
  showProblem(error) {
    replace(this.problem, error && h("p", { class: "notice is-error" }, error.message));
  }

  load() {}

  verdict({ outcome, verdict, runs, command, program }) {
    const state = outcome === "passed" ? "accepted" : outcome === null ? "pending" : "rejected";
    return h("header", { class: `report-verdict is-${state}` }, icon(state, "is-medium"), h("div", {},
      h("h2", {}, visible(verdict, { limit: 600 })),
      h("ul", { class: "report-runs" }, runs.map((run) => h("li", {},
        h("strong", {}, visible(run.name || run.id, { limit: 200 })), " ", h("span", { class: "quiet" }, fullTime(run.started_at)),
        run.profile && [" ", h("span", { class: "chip" }, "profile", visible(run.profile, { limit: 100 }))], run.seed !== null && [" ", h("span", { class: "chip" }, `seed ${run.seed}`)],
        run.state === "interrupted" && [" ", h("span", { class: "chip is-finding" }, "interrupted: the run never ended")],
        Object.entries(run.labels).map(([name, value]) => [" ", h("span", { class: "chip" }, visible(`${name} ${value}`, { limit: 100 }))]),
        run.notes.map((note) => h("p", { class: "quiet" }, visible(note, { limit: 200 })))))),
      command && h("div", { class: "command-line" }, h("code", { class: "wrap" }, visible(command, { limit: 2000 })), button("Copy", () => copy(command, "the command"), { class: "small plain-button", "aria-label": "Copy the command that repeats the run" })),
      h("p", { class: "quiet" }, `apns-mock ${program}`)));
  }

  section(title, content) {
    return h("section", { class: "card" }, h("h3", {}, title), content);
  }

  failure({ name, outcome, message, pushes, nearest, run, started_at: start, ended_at: end }, tests, baseline) {
    // Another test of the same name has its own pushes.
    const isUnique = tests.filter((one) => one.run === run && one.name === name).length < 2;
    const time = isUnique ? "" : ` since:"${start}"${end ? ` until:"${end}"` : ""}`;
    const note = pushes ? `${pushCount(pushes)} in this test` : nearest.length ? "No push belongs to this test. The nearest in time:" : "No push arrived.";
    return h("article", { class: "report-failure" },
      h("h4", {}, icon("rejected"), visible(name, { limit: 300 }), outcome === "interrupted" && h("span", { class: "chip is-finding" }, "did not end"), baseline?.tests.new.includes(name) && h("span", { class: "chip is-new" }, "new")),
      message && h("pre", { class: "code", tabindex: "0", "aria-label": "Failure" }, visible(message, { lines: true, limit: 4000 })),
      h("p", { class: "quiet" }, note, pushes > 0 && [" ", button("Show in the list", () => go({ view: "inbox", push: null, q: `run:${quoted(run)} test:${quoted(name)}${time}` }), { class: "small" })]),
      nearest.length > 0 && this.lines(nearest, name));
  }

  pushList(title, { count: number, items }, meaning) {
    if (!number) return null;
    return this.section(`${title}: ${pushCount(number)}`, [h("p", { class: "quiet" }, meaning), this.lines(items), number > items.length && h("p", { class: "quiet" }, `and ${count(number - items.length)} more`)]);
  }

  /** The pushes; `test` is the test in whose part of the report they are. */
  lines(items, test = null) {
    return h("ul", { class: "report-pushes" }, items.map((one) => h("li", {},
      button(`#${one.seq}`, () => this.actions.open(one.seq), { class: "small", "aria-label": `Open push ${one.seq}` }),
      h("span", { class: `badge is-${one.outcome}` }, icon(one.outcome), visible(one.response, { limit: 100 })), h("time", { class: "quiet", datetime: one.received_at }, dayTime(one.received_at)),
      one.attempt > 1 && h("span", { class: "chip" }, `attempt ${one.attempt}`), visible(one.topic ?? "no topic", { limit: 100 }), h("span", { class: "mono quiet" }, visible(tail(one.device_token), { limit: 20 })),
      one.rule && h("span", { class: "chip" }, "rule", visible(one.rule, { limit: 80 })), one.test && one.test !== test && h("span", { class: "quiet" }, "in ", visible(one.test, { limit: 200 })),
      one.detail && h("p", {}, visible(one.detail, { limit: 600 })))));
  }

  finding({ finding, count: number, summary, advice, records }, baseline) {
    const isNew = baseline?.findings.new.includes(finding);
    return h("article", { class: "report-finding" },
      h("h4", {}, icon("flag"), finding, h("span", { class: "chip is-finding" }, pushCount(number)), baseline && h("span", { class: isNew ? "chip is-new" : "chip" }, isNew ? "new" : "unchanged"),
        button("Show in the list", () => go({ view: "inbox", push: null, q: `finding:${finding}` }), { class: "small", "aria-label": `Show pushes with ${finding}` })),
      h("p", {}, summary), h("p", { class: "advice" }, h("strong", {}, "Do this: "), advice),
      h("p", { class: "quiet" }, records.slice(0, 5).map((one) => [button(`#${one.seq}`, () => this.actions.open(one.seq), { class: "small", "aria-label": `Open push ${one.seq}` }), " "])));
  }

  baseline(baseline) {
    if (!baseline) return null;
    const row = (title, change, isNamed = false) => [title, this.names(change.new, isNamed), this.names(change.fixed, isNamed), count(change.unchanged.length), this.names(change.unknown, isNamed)];
    const delays = Object.keys(baseline.now.delays).filter((name) => baseline.old.delays[name] !== baseline.now.delays[name]).map((name) => `time to acceptance, ${name.replace("_ms", "")}: ${baseline.old.delays[name] ?? "–"} ms → ${baseline.now.delays[name]} ms`);
    return this.section(["Since ", visible(baseline.name, { limit: 200 })], [
      baseline.warning && h("p", { class: "notice" }, baseline.warning),
      table("What has changed", ["", "New", "Fixed", "Unchanged", "Unknown: not all tests ran, or pushes are missing"], [row("Failed tests", baseline.tests, true), row("Findings", baseline.findings, true), row("Lost pushes", baseline.lost), row("Not accepted", baseline.unaccepted)]),
      h("ul", { class: "quiet" }, h("li", {}, `pushes: ${count(baseline.old.pushes)} → ${count(baseline.now.pushes)}`), delays.map((text) => h("li", {}, text)),
        Object.entries(baseline.reasons).map(([reason, change]) => h("li", {}, visible(reason, { limit: 100 }), `: ${change.old} → ${change.new}`)))]);
  }

  names(names, isNamed) {
    return [count(names.length), isNamed && names.length > 0 && [": ", names.slice(0, 10).map((name, index) => [index > 0 && ", ", visible(name, { limit: 200 })])]];
  }

  figures({ pushes, outcomes, retries, delays, reasons }) {
    const tile = (name, value) => h("div", { class: "tile" }, h("dt", {}, name), h("dd", {}, value));
    const time = (ms) => (ms === null ? "–" : `${count(ms)} ms`);
    return [h("dl", { class: "tiles" }, tile("Pushes", count(pushes)), tile("Accepted", count(outcomes.accepted)), tile("Retries", count(retries)),
      tile("Time to acceptance p50", time(delays.median_ms)), tile("p90", time(delays.p90_ms)), tile("Maximum", time(delays.max_ms))),
    Object.keys(reasons).length > 0 && this.section("Not accepted, by response", h("ul", { class: "report-reasons" }, Object.entries(reasons).map(([reason, number]) => h("li", {}, visible(reason, { limit: 100 }), " ", h("span", { class: "quiet" }, count(number))))))];
  }

  tests(tests) {
    if (!tests.length) return null;
    const open = (test) => button([visible(test.name, { limit: 300 })], () => go({ view: "inbox", push: null, q: `run:${quoted(test.run)} test:${quoted(test.name)}` }), { class: "plain" });
    const details = h("details", { class: "card" }, h("summary", {}, `All tests: ${count(tests.length)}`));
    details.addEventListener("toggle", () => details.childElementCount > 1 || details.append(
      table("Tests", ["Test", "Outcome", "Time", "Pushes"], tests.slice(0, SHOWN_TESTS).map((test) => [open(test), test.outcome ?? "running", test.duration_ms === null ? "" : `${count(test.duration_ms)} ms`, count(test.pushes)])),
      tests.length > SHOWN_TESTS ? h("p", { class: "quiet" }, `and ${count(tests.length - SHOWN_TESTS)} more`) : ""));
    return details;
  }
}

/** Shows a message instead of a report that cannot be read. */
export function showProblem(element, message) {
  replace(element, h("p", { class: "notice is-error" }, message));
}
