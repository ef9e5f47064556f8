// The attempts of pushes, and a strip with those of one: `12:03:05 503 → 12:03:06 503 → 12:03:09 200`.
import { button, h } from "./dom.js";
import { dayTime } from "./format.js";
import { icon } from "./icons.js";
import { isNamed } from "./seq.js";
import { responseText } from "./summary.js";

/** The fields by which `seriesOf` finds the attempts of a push. */
export const SERIES_FIELDS = "seq,attempt,push_key,received_at,outcome,accepted,served";

/**
 * The attempts of each push, in the order of their times: those with the same key, as long as their numbers increase. In a report,
 * equal pushes of two tests are not the same push.
 */
export function seriesOf(attempts) {
  const newest = new Map();
  const all = [];
  for (const one of attempts.toSorted((first, second) => Date.parse(first.received_at) - Date.parse(second.received_at) || first.seq - second.seq)) {
    const key = [one.push_key, isNamed(one.seq) ? one.seq.split(":")[0] : "", one.run, one.test_number].join(" ");
    const series = newest.get(key);
    if (series && one.attempt > series.at(-1).attempt) series.push(one);
    else all.push(newest.set(key, [one]).get(key));
  }
  return all;
}

/** Null for a push with a single attempt. */
export function attemptsStrip(attempts, record, open) {
  if (attempts.length < 2) return null;
  const steps = [];
  for (const [index, attempt] of attempts.entries()) {
    if (index) steps.push(h("span", { class: "attempt-gap", "aria-hidden": "true" }, pause(attempts[index - 1], attempt)));
    steps.push(button([icon(attempt.outcome), h("span", {}, responseText(attempt))], () => open(attempt.seq), {
      class: `attempt is-${attempt.outcome}`, "aria-current": attempt.seq === record.seq ? "true" : null,
      title: `Attempt ${attempt.attempt} at ${dayTime(attempt.received_at)}`,
      "aria-label": `Attempt ${attempt.attempt}, ${responseText(attempt)} ${attempt.outcome}`,
    }));
  }
  const last = attempts.at(-1);
  if (!last.accepted && last.outcome !== "pending") steps.push(h("span", { class: "quiet" }, "… not retried yet"));
  return [h("span", { class: "quiet" }, "Attempts"), steps];
}

function pause(before, after) {
  const ms = Date.parse(after.received_at) - Date.parse(before.received_at);
  return `→ ${ms < 1000 ? `${ms} ms` : ms < 60000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.round(ms / 60000)} min`} →`;
}
