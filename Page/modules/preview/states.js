// The states of a Live Activity over time: what its pushes have set, oldest first.
import { get } from "../api.js";
import { button, h, replace } from "../dom.js";
import { clockTime } from "../format.js";
import { icon } from "../icons.js";
import { apsOf, object } from "../summary.js";
import { quoted } from "../terms.js";
import { visible } from "../visible.js";

const MAX_STATES = 40;

/** A list that is filled when the pushes of the activity are loaded. `open(seq)` is called for a click. */
export function activityStates(record, open) {
  const container = h("div", { class: "activity-states" });
  const { device_token: token } = record.request ?? {};
  if (typeof token !== "string" || token.length > 300) return container;
  get("/pushes", { q: `token:${quoted(token)} type:liveactivity`, order: "desc", limit: MAX_STATES, fields: "seq,received_at,outcome,accepted,request.payload" }).then((page) => {
    const pushes = page.items.reverse();
    if (pushes.length < 2) return;
    let former = {};
    replace(container, h("h4", {}, "States over time"), page.matched > pushes.length && h("p", { class: "quiet" }, `The last ${pushes.length} of ${page.matched}.`),
      h("ol", { class: "state-list" }, pushes.map((push) => {
        const aps = apsOf(push) ?? {};
        const state = object(aps["content-state"]) ?? {};
        const changed = Object.entries(state).filter(([name, value]) => JSON.stringify(former[name]) !== JSON.stringify(value));
        // A push that was not accepted sets nothing.
        if (push.accepted) former = state;
        return h("li", { class: push.accepted ? "" : "is-not-set", "aria-current": push.seq === record.seq ? "true" : null },
          button([icon(push.outcome), clockTime(push.received_at)], () => open(push.seq), { class: "small", "aria-label": `Open push ${push.seq}` }),
          h("strong", {}, visible(String(aps.event ?? "no event"), { limit: 20 })),
          h("span", {}, changed.length ? changed.slice(0, 6).map(([name, value], index) => [index > 0 && ", ", h("span", { class: "quiet" }, visible(name, { limit: 40 }), " "), visible(typeof value === "string" ? value : JSON.stringify(value), { limit: 60 })])
            : h("span", { class: "quiet" }, "no change"), changed.length > 6 && ` and ${changed.length - 6} more`));
      })));
  }).catch(() => {});
  return container;
}
