// The way to the answer: the rules of APNs in their order, then the fault, then what went out.
import { get } from "../api.js";
import { h, replace } from "../dom.js";
import { advice, CHECK_NAMES, story } from "../explain.js";
import { latency } from "../format.js";
import { icon } from "../icons.js";
import { nameOf } from "../row.js";
import { answerOf } from "../summary.js";
import { visible } from "../visible.js";

export function verdictTab(record) {
  return [
    h("div", { class: `verdict is-${record.outcome}` }, icon(record.outcome, "is-medium"),
      h("div", {}, h("p", { class: "verdict-story" }, visible(story(record))), h("p", { class: "verdict-advice" }, advice(record)))),
    path(record),
    findings(record),
    checks(record.verdict),
    faultPart(record),
    answerPart(record),
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

function findings(record) {
  if (!record.findings?.length) return null;
  return h("section", {}, h("h3", {}, "Findings about the provider"), h("ul", { class: "findings" }, record.findings.map((finding) => {
    const name = nameOf(finding);
    return h("li", {}, icon("flag"), h("span", {}, h("strong", {}, name), FINDINGS[name] ? ` — ${FINDINGS[name]}` : "",
      typeof finding === "object" && finding?.message ? ` — ${finding.message}` : ""));
  })));
}

const FINDINGS = {
  "retried-permanent": "the same push was sent again after an answer that never changes",
  "retried-410": "it was sent again to a device that is gone", "hot-retry": "it was sent again without a pause",
  "no-backoff": "the pauses between attempts do not grow", "jwt-churn": "provider tokens are made too often",
  "jwt-stale": "the provider token is too old", "after-goaway": "it came on a connection that was told to end",
  "excess-streams": "more streams were opened than allowed", "connection-churn": "a connection for each push",
  "duplicate": "the phone gets this push twice", "near-limit": "the payload is nearly as large as allowed",
  "would-not-show": "APNs takes it, and a device drops it", "missing-push-type": "apns-push-type is missing",
};

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
