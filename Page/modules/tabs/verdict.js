// The steps to the response: the checks of APNs in order, the fault and the response.
import { get } from "../api.js";
import { button, h, replace } from "../dom.js";
import { CHECK_NAMES, story } from "../explain.js";
import { latency } from "../format.js";
import { icon } from "../icons.js";
import { isSuccess, responseText } from "../summary.js";
import { visible } from "../visible.js";

export function verdictTab(record, actions) {
  const text = h("div", {}, h("p", { class: "verdict-story" }, visible(story(record))));
  const findings = h("div", {});
  get(`/pushes/${record.seq}/explain`).then((explanation) => {
    replace(text, h("p", { class: "verdict-story" }, visible(explanation.text)), h("p", { class: "verdict-advice" }, visible(explanation.advice)));
    replace(findings, findingList(explanation.findings ?? [], actions));
  }, () => {}); // Without the explanation, show only the record's data.
  return [
    h("div", { class: `verdict is-${record.outcome}` }, icon(record.outcome, "is-medium"), text),
    path(record), findings, checks(record.verdict), faultPart(record), responsePart(record),
  ];
}

/** Checks of APNs → fault → response. */
function path(record) {
  const { verdict, fault, served } = record;
  const steps = [
    ["APNs checks", verdict ? `${verdict.status} ${verdict.reason ?? ""}` : "not validated", verdict ? isSuccess(verdict.status) : null],
    ["Fault", fault ? `${fault.rule}: ${fault.action}` : "none", fault ? false : null],
    ...(record.upstream ? [["Upstream", upstreamText(record.upstream), !record.upstream.deviating && isSuccess(record.upstream.status)]] : []),
    ["Responded", `${responseText(record)} ${served?.reason ?? ""}`, isSuccess(served?.status)],
    ["Accepted by APNs", record.accepted ? "yes" : "no", record.accepted],
  ];
  return h("ol", { class: "path" }, steps.map(([name, value, isGood]) =>
    h("li", { class: isGood === null ? "" : isGood ? "is-good" : "is-bad" }, h("span", { class: "quiet" }, name), h("strong", {}, visible(value)))));
}

/** The answer of the service that the push was forwarded to, and whether the rules say the same. */
function upstreamText({ status, reason, problem, deviating }) {
  const answer = status === null ? problem ?? "no answer" : `${status} ${reason ?? ""}`.trim();
  return deviating ? `${answer}, deviates from the checks` : answer;
}

/** The findings, each with its summary, explanation, advice and evidence. */
function findingList(findings, actions) {
  if (!findings.length) return null;
  return h("section", {}, h("h3", {}, "Findings"), h("ul", { class: "findings" }, findings.map((finding) =>
    h("li", {}, icon("flag"), h("div", {}, h("strong", {}, finding.finding), " ", visible(finding.summary ?? ""),
      finding.explanation && h("p", {}, visible(finding.explanation)), finding.advice && h("p", { class: "quiet" }, visible(finding.advice)),
      finding.evidence?.length > 0 && h("p", { class: "evidence" }, finding.evidence.slice(0, 12).map((seq) =>
        button(`#${seq}`, () => actions.open(seq), { class: "small" }))))))));
}

function checks(verdict) {
  if (!verdict) return h("p", { class: "notice" }, "The push was not validated: a fault ended it first.");
  return h("section", {}, h("h3", {}, "Checks"), h("ol", { class: "checks" }, (verdict.checks ?? []).map((check) =>
    h("li", { class: check.ok ? "yes-line" : "no-line" }, h("span", { class: check.ok ? "yes" : "no" }, check.ok ? "✓" : "✕"),
      h("span", {}, CHECK_NAMES[check.check] ?? check.check, check.detail && h("strong", { class: "block" }, visible(check.detail)))))));
}

function faultPart(record) {
  const { fault } = record;
  if (!fault) return null;
  const details = h("div", {});
  get(`/rules/${encodeURIComponent(fault.rule)}/explain`).then((explanation) => replace(details, evaluation(explanation)), () => {});
  return h("section", {}, h("h3", {}, "Fault"), h("dl", { class: "facts" },
    h("dt", {}, "Rule"), h("dd", {}, visible(fault.profile ? `${fault.rule} of ${fault.profile}` : fault.rule)),
    h("dt", {}, "Action"), h("dd", {}, fault.action),
    typeof fault.draw === "number" && [h("dt", {}, "Draw"), h("dd", {}, `${fault.draw.toFixed(6)} < ${fault.p}`, " (deterministic for a given seed)")],
    fault.also?.length && [h("dt", {}, "Also"), h("dd", {}, fault.also.map((one) => `${one.rule}: ${one.action}`).join(", "))]), details);
}

/** The API's explanation of the rule. */
function evaluation(explanation) {
  return explanation?.text ? h("pre", { class: "code", tabindex: "0", "aria-label": "Evaluation of the rule" }, visible(explanation.text, { lines: true })) : null;
}

function responsePart(record) {
  const served = record.served ?? {};
  return h("section", {}, h("h3", {}, "Response"), h("dl", { class: "facts" },
    h("dt", {}, "Status"), h("dd", {}, responseText(record), served.reason && ` ${served.reason}`),
    served.reset && [h("dt", {}, "Stream reset"), h("dd", {}, served.reset)],
    served.goaway && [h("dt", {}, "GOAWAY"), h("dd", {}, `${served.goaway.code ?? ""}, last stream ${served.goaway.last_stream ?? "?"} `, visible(served.goaway.debug ?? ""))],
    served.closed && [h("dt", {}, "Connection"), h("dd", {}, served.closed)],
    record.upstream && [h("dt", {}, "Upstream"), h("dd", {}, visible(upstreamText(record.upstream)),
      record.upstream.latency_ms !== null && ` after ${latency(record.upstream.latency_ms)}`, record.upstream.connection !== null && `, connection ${record.upstream.connection}`)],
    h("dt", {}, "apns-id"), h("dd", { class: "mono wrap" }, visible(record.apns?.id ?? "none"), record.apns?.id_origin && h("span", { class: "quiet" }, ` generated by the ${record.apns.id_origin}`)),
    served.latency_ms !== null && [h("dt", {}, "Latency"), h("dd", {}, latency(served.latency_ms))]));
}
