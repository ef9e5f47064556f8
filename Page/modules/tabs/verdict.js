// The way to the answer: the rules of APNs in their order, then the fault, then what went out.
import { get } from "../api.js";
import { button, h, replace } from "../dom.js";
import { CHECK_NAMES, story } from "../explain.js";
import { latency } from "../format.js";
import { icon } from "../icons.js";
import { answerOf } from "../summary.js";
import { visible } from "../visible.js";

export function verdictTab(record, acts) {
  const text = h("div", {}, h("p", { class: "verdict-story" }, visible(story(record))));
  const findings = h("div", {});
  get(`/pushes/${record.seq}/explain`).then((told) => {
    replace(text, h("p", { class: "verdict-story" }, visible(told.text)), h("p", { class: "verdict-advice" }, visible(told.advice)));
    replace(findings, findingList(told.findings ?? [], acts));
  }, () => {}); // Then what the record itself tells has to do.
  return [
    h("div", { class: `verdict is-${record.outcome}` }, icon(record.outcome, "is-medium"), text),
    path(record), findings, checks(record.verdict), faultPart(record), answerPart(record),
  ];
}

/** Rules of APNs → fault → what went out. */
function path(record) {
  const { verdict, fault, served } = record;
  const steps = [
    ["Rules of APNs", verdict ? `${verdict.status} ${verdict.reason ?? ""}` : "not judged", verdict ? verdict.status === 200 : null],
    ["Fault", fault ? `${fault.rule}: ${fault.action}` : "none", fault ? false : null],
    ["Went out", `${answerOf(record)} ${served?.reason ?? ""}`, served?.status === 200],
    ["APNs has the push", record.accepted ? "yes" : "no", record.accepted],
  ];
  return h("ol", { class: "path" }, steps.map(([name, value, isGood]) =>
    h("li", { class: isGood === null ? "" : isGood ? "is-good" : "is-bad" }, h("span", { class: "quiet" }, name), h("strong", {}, visible(value)))));
}

/** What the provider does wrong: each with what it is, why it is said, and the pushes that prove it. */
function findingList(findings, acts) {
  if (!findings.length) return null;
  return h("section", {}, h("h3", {}, "Findings about the provider"), h("ul", { class: "findings" }, findings.map((finding) =>
    h("li", {}, icon("flag"), h("div", {}, h("strong", {}, finding.finding), " ", visible(finding.summary ?? ""),
      finding.explanation && h("p", {}, visible(finding.explanation)), finding.advice && h("p", { class: "quiet" }, visible(finding.advice)),
      finding.evidence?.length > 0 && h("p", { class: "evidence" }, finding.evidence.slice(0, 12).map((seq) =>
        button(`#${seq}`, () => acts.open(seq), { class: "small" }))))))));
}

function checks(verdict) {
  if (!verdict) return h("p", { class: "notice" }, "The push was not judged: a fault ended it before.");
  return h("section", {}, h("h3", {}, "Checks, in their order"), h("ol", { class: "checks" }, (verdict.checks ?? []).map((check) =>
    h("li", { class: check.ok ? "yes-line" : "no-line" }, h("span", { class: check.ok ? "yes" : "no" }, check.ok ? "✓" : "✕"),
      h("span", {}, CHECK_NAMES[check.check] ?? check.check, check.detail && h("strong", { class: "block" }, visible(check.detail)))))));
}

function faultPart(record) {
  const { fault } = record;
  if (!fault) return null;
  const walk = h("div", {});
  get(`/rules/${encodeURIComponent(fault.rule)}/explain`).then((told) => replace(walk, walkOf(told)), () => {});
  return h("section", {}, h("h3", {}, "Fault"), h("dl", { class: "facts" },
    h("dt", {}, "Rule"), h("dd", {}, visible(fault.profile ? `${fault.rule} of ${fault.profile}` : fault.rule)),
    h("dt", {}, "Action"), h("dd", {}, fault.action),
    typeof fault.draw === "number" && [h("dt", {}, "Draw"), h("dd", {}, `${fault.draw.toFixed(6)} < ${fault.p}`, " (the same for the same seed)")],
    fault.also?.length && [h("dt", {}, "Also"), h("dd", {}, fault.also.map((one) => `${one.rule}: ${one.action}`).join(", "))]), walk);
}

/** What the rule did so far, in the words of the API. */
function walkOf(told) {
  return told?.text ? h("pre", { class: "code", tabindex: "0", "aria-label": "What the rule did so far" }, visible(told.text, { lines: true })) : null;
}

function answerPart(record) {
  const served = record.served ?? {};
  return h("section", {}, h("h3", {}, "Answer"), h("dl", { class: "facts" },
    h("dt", {}, "Status"), h("dd", {}, answerOf(record), served.reason && ` ${served.reason}`),
    served.reset && [h("dt", {}, "Stream reset"), h("dd", {}, served.reset)],
    served.goaway && [h("dt", {}, "GOAWAY"), h("dd", {}, `${served.goaway.code ?? ""}, last stream ${served.goaway.last_stream ?? "?"} `, visible(served.goaway.debug ?? ""))],
    served.closed && [h("dt", {}, "Connection"), h("dd", {}, served.closed)],
    h("dt", {}, "apns-id"), h("dd", { class: "mono wrap" }, visible(record.apns?.id ?? "none"), record.apns?.id_origin && h("span", { class: "quiet" }, ` made by the ${record.apns.id_origin}`)),
    served.latency && [h("dt", {}, "After"), h("dd", {}, latency(served.latency))]));
}
