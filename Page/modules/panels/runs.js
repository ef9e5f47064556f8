// The runs of test suites: a list, and the report of one.
import { download, get } from "../api.js";
import { showError } from "../copy.js";
import { button, h, oneAtATime, replace, table } from "../dom.js";
import { count, fullTime } from "../format.js";
import { icon } from "../icons.js";
import { ReportPanel } from "../report/panel.js";
import { go, onChange, shown } from "../route.js";
import { visible } from "../visible.js";

const INTERVAL = 3000; // milliseconds between updates while the view is shown
const STATES = { passed: "accepted", failed: "rejected", interrupted: "incomplete", skipped: "pending" };

export class RunsPanel {
  /** `actions`: `open(seq)`. */
  constructor(actions) {
    this.actions = actions;
    this.runs = [];
    this.drawn = null; // what is shown, to draw only changes
    this.baseline = ""; // the id of the run with which the report is compared
    this.filter = h("input", { type: "search", placeholder: "Name, label or outcome", "aria-label": "Filter runs", on: { input: () => this.drawList() } });
    this.choice = h("select", { "aria-label": "Compare with", on: { change: () => { this.baseline = this.choice.value; this.load(); } } });
    this.tools = h("div", { class: "field-row" });
    this.content = h("div", { class: "runs-content" }, h("p", { class: "notice" }, "Loading …"));
    this.element = h("section", { class: "panel runs", "aria-label": "Runs" },
      h("header", { class: "panel-head" }, h("h2", {}, "Runs"), this.tools), this.content);
    this.load = oneAtATime(() => this.read());
    onChange((now, before) => {
      if (now.view !== "runs" || now.run === before.run) return;
      this.baseline = "";
      this.load();
    });
    setInterval(() => this.element.isConnected && !document.hidden && (shown.run === null || shown.run !== this.missing) && this.load(), INTERVAL);
  }

  async read() {
    const id = shown.run;
    try {
      if (id === null) {
        this.runs = (await get("/runs")).items;
        if (shown.run === null) this.drawList();
        return;
      }
      const run = await get(`/runs/${encodeURIComponent(id)}`);
      // A report is made anew only if something may have changed.
      const state = JSON.stringify([id, run.state, run.state === "running" && (await get("/status")).inbox.last_seq, run.test_counts, this.baseline]);
      if (state === this.drawn) return;
      const { baseline } = this;
      const [summary, { items }] = await Promise.all([get(`/runs/${encodeURIComponent(id)}/report`, { format: "json", ...(baseline ? { baseline } : {}) }), get("/runs")]);
      if (shown.run !== id || this.baseline !== baseline) return;
      this.drawn = state;
      this.drawRun(id, summary, items.filter((one) => one.id !== id));
      this.report.drawChart(await get("/stats", { q: `run:${id}`, buckets: 90 }));
    } catch (error) {
      if (shown.run !== id) return;
      if (error.status === 404 && this.baseline) {
        this.baseline = "";
        showError(error);
        return this.read();
      }
      this.drawn = null;
      this.missing = error.status === 404 ? id : null; // It is not asked for again.
      this.showTools(null, id !== null && this.back());
      replace(this.content, h("p", { class: "notice is-error", role: "status" }, visible([error.message, error.hint].filter(Boolean).join(" — "), { limit: 500 })));
    }
  }

  back() {
    return button("All runs", () => go({ run: null }), { class: "small" });
  }

  drawRun(id, summary, others) {
    const options = others.map((one) => [one.id, `${(one.name || one.id).slice(0, 60)} (${one.id}, ${one.outcome ?? one.state})`]);
    const offered = JSON.stringify(options);
    // An unchanged list stays open.
    if (offered !== this.offered) {
      this.offered = offered;
      replace(this.choice, h("option", { value: "" }, "Compare with …"), options.map(([value, text]) => h("option", { value }, text)));
    }
    this.choice.value = this.baseline;
    this.choice.hidden = !others.length;
    this.showTools(id, this.back(), this.choice, button("Pushes of this run", () => this.search(id), { class: "small" }),
      button("Download the report", () => download(`/runs/${encodeURIComponent(id)}/report`, {}, `${id}.html`).catch(showError), { class: "small", title: "One file that opens from disk" }));
    this.report = new ReportPanel(summary, this.actions);
    replace(this.content, this.report.element);
  }

  /** Shows the tools of the list, or of a run. Those that are shown already keep the focus; without a key they are replaced. */
  showTools(key, ...tools) {
    if (key === null || key !== this.toolsOf) replace(this.tools, ...tools);
    this.toolsOf = key;
  }

  drawList() {
    const wanted = this.filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const runs = this.runs.filter((run) => {
      const text = [run.id, run.name, run.outcome ?? run.state, ...Object.entries(run.labels).flat()].join(" ").toLowerCase();
      return wanted.every((word) => text.includes(word));
    });
    const state = JSON.stringify([wanted, runs]);
    if (state === this.drawn) return;
    this.drawn = state;
    this.showTools("", this.filter);
    replace(this.content, runs.length
      ? table("Runs, the newest first", ["Run", "Result", "Failed tests", "Started", "Labels", ""], runs.map((run) => this.row(run)))
      : h("div", { class: "empty-panel" }, h("p", {}, this.runs.length ? "No run matches." : "No runs yet."),
        this.runs.length === 0 && h("p", { class: "quiet" }, "apns-mock exec, and the plugins for pytest, Node.js, JUnit 5, Go and Swift Testing record their tests here.")));
  }

  row(run) {
    const { failed, interrupted, total } = run.test_counts;
    const outcome = run.outcome ?? run.state;
    return [
      [button([visible(run.name || run.id, { limit: 120 })], () => go({ run: run.id }), { class: "link run-name", "aria-label": `Report of ${run.id}` }), " ", h("span", { class: "quiet" }, run.id)],
      h("span", { class: `word is-${STATES[outcome] ?? "pending"}` }, icon(STATES[outcome] ?? "pending"), " ", outcome),
      `${count(failed + interrupted)} of ${count(total)}`, h("time", { datetime: run.started_at, title: run.started_at }, fullTime(run.started_at).split(" (")[0]),
      Object.entries(run.labels).slice(0, 4).map(([name, value]) => [h("span", { class: "chip" }, visible(`${name} ${value}`, { limit: 60 })), " "]),
      button("Pushes", () => this.search(run.id), { class: "small", "aria-label": `Pushes of ${run.id}` }),
    ];
  }

  search(id) {
    go({ view: "inbox", push: null, q: `run:${id}` });
  }
}
