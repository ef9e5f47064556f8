// The states of a Live Activity over time: what its pushes have set, oldest first.
import { get } from "../api.js";
import { button, h, replace } from "../dom.js";
import { dayTime } from "../format.js";
import { icon } from "../icons.js";
import { seqRanges } from "../records.js";
import { apsOf, object } from "../summary.js";
import { quoted } from "../terms.js";
import { visible } from "../visible.js";

const MAX_STATES = 40;
const FIELDS = "seq,received_at,outcome,accepted,request.device_token,request.payload";

/** A list that is filled when the pushes of the activity are loaded. `open(seq)` is called for a click. */
export function activityStates(record, open) {
  const container = h("div", { class: "activity-states" });
  const { device_token: token } = record.request ?? {};
  if (typeof token !== "string" || token.length > 300) return container;
  pushesOf(record, token).then(({ pushes, cut }) => {
    if (pushes.length < 2) return;
    let former = {};
    replace(container, h("h3", {}, "States over time"), cut && h("p", { class: "quiet" }, cut),
      h("ol", { class: "state-list" }, pushes.map((push) => {
        const aps = apsOf(push) ?? {};
        const state = object(aps["content-state"]) ?? {};
        const changed = Object.entries(state).filter(([name, value]) => JSON.stringify(former[name]) !== JSON.stringify(value));
        // A push that was not accepted sets nothing.
        if (push.accepted) former = state;
        return h("li", { class: push.accepted ? "" : "is-not-set", "aria-current": push.seq === record.seq ? "true" : null },
          button([icon(push.outcome), dayTime(push.received_at)], () => open(push.seq), { class: "small", "aria-label": `Open push ${push.seq}` }),
          h("strong", {}, visible(String(aps.event ?? "no event"), { limit: 20 })),
          h("span", {}, changed.length ? changed.slice(0, 6).map(([name, value], index) => [index > 0 && ", ", h("span", { class: "quiet" }, visible(name, { limit: 40 }), " "), visible(typeof value === "string" ? value : JSON.stringify(value), { limit: 60 })])
            : h("span", { class: "quiet" }, "no change"), changed.length > 6 && ` and ${changed.length - 6} more`));
      })));
  }).catch(() => {});
  return container;
}

/** The pushes of the Live Activity of a push, oldest first, and a text about those that are not among them. */
async function pushesOf(record, token) {
  const [item] = (await get("/devices", { tokens: token }).catch(() => null))?.items ?? [];
  if (!item?.device || !item.kind?.startsWith("liveactivity")) return ofToken(record, token);
  const path = `/devices/${encodeURIComponent(item.device)}`;
  const [{ activities }, { items: shown }] = await Promise.all([get(path), get(`${path}/notifications`)]);
  // A push that an activity shows names its present token, also if it was sent to a former one.
  const current = shown.find((one) => one.seq === record.seq)?.activity ?? token;
  const activity = activities.find((one) => one.token === current || one.started_by === record.seq);
  const own = activity?.token ?? current;
  const known = new Set(shown.filter((one) => one.activity && one.activity === own).map((one) => one.seq));
  if (activity?.started_by) known.add(activity.started_by);
  // All pushes to the token of an activity are its own; a push-to-start token starts several.
  const isStart = item.kind === "liveactivity_start" || isStartOf(record);
  if (isStart) known.add(record.seq);
  const tokens = new Set([...(isStart ? [] : [token]), ...(activity || !isStart ? [own] : [])]);
  const pages = await Promise.all([
    ...[...tokens].map((one) => get("/pushes", { q: `token:${quoted(one)} type:liveactivity`, order: "desc", limit: MAX_STATES, fields: FIELDS })),
    known.size > 0 && get("/pushes", { seqs: seqRanges(known)[0], order: "desc", limit: MAX_STATES, fields: FIELDS }),
  ].filter(Boolean));
  const found = new Map(pages.flatMap((page) => page.items).map((push) => [push.seq, push]));
  const pushes = [...found.values()].sort((one, other) => one.seq - other.seq);
  const isCut = pushes.length > MAX_STATES || pages.some((page) => page.next);
  return { pushes: pushes.slice(-MAX_STATES), cut: isCut && `The last ${Math.min(MAX_STATES, pushes.length)}.` };
}

/** The pushes to a token of which it is not known which activity shows them: an accepted push with the event `start` begins another one. */
async function ofToken(record, token) {
  const q = `token:${quoted(token)} type:liveactivity`;
  const page = await get("/pushes", { q, order: "desc", limit: MAX_STATES, fields: FIELDS });
  const all = page.items.reverse();
  const here = all.findIndex((push) => push.seq === record.seq);
  const first = Math.max(0, all.findLastIndex((push, index) => index <= here && isStartOf(push)));
  const next = all.findIndex((push, index) => index > here && isStartOf(push));
  const isCut = page.matched > all.length && (first === 0 && !isStartOf(all[0]));
  return { pushes: all.slice(first, next < 0 ? undefined : next), cut: isCut && `The last ${all.length} of ${page.matched}.` };
}

function isStartOf(push) {
  return push.accepted && apsOf(push)?.event === "start";
}
