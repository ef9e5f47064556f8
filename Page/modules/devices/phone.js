// What a device shows now: notifications, running Live Activities and badges, as the server's registry has them.
import { h } from "../dom.js";
import { banner, deviceTime } from "../preview/alert.js";
import { activityCard, activityFacts } from "../preview/activity.js";
import { apsOf } from "../summary.js";
import { visible } from "../visible.js";

/** `contents`: the response of `/devices/{id}/notifications`; `pushes`: the newest pushes to the device, which have the times. */
export function phone(contents, pushes, open) {
  const times = new Map(pushes.map((push) => [push.seq, push.received_at]));
  const newest = [...contents.items].reverse();
  const activities = newest.filter((item) => item.push_type === "liveactivity" || apsOf(record(item))?.["content-state"] !== undefined);
  const alerts = newest.filter((item) => !activities.includes(item));
  const badges = Object.entries(contents.badges);
  return h("section", { class: "card" }, h("h3", {}, "On the device now"),
    h("div", { class: "phone is-registry" },
      badges.length > 0 && h("ul", { class: "badge-list" }, badges.map(([app, badge]) => h("li", {}, h("span", { class: "wrap" }, visible(app, { limit: 80 })), " ", h("span", { class: "phone-badge" }, visible(JSON.stringify(badge), { limit: 12 }))))),
      activities.map((item) => card(item, activityCard(record(item)), open)), alerts.map((item) => card(item, banner(record(item), times.has(item.seq) ? deviceTime(times.get(item.seq)) : ""), open)),
      newest.length === 0 && h("p", { class: "phone-nothing" }, "no notifications")),
    activities.map((item) => h("div", { class: "activity" }, h("h4", {}, "Live Activity"), h("dl", { class: "facts" }, activityFacts(apsOf(record(item)) ?? {}).map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])))));
}

function card(item, content, open) {
  return h("div", { class: "phone-card" }, content, h("div", { class: "phone-card-facts" },
    h("button", { type: "button", class: "link", data: { key: `shown-${item.seq}` }, on: { click: () => open(item.seq) } }, `#${item.seq}`),
    item.collapse_id && h("span", { class: "wrap" }, "collapse id ", visible(item.collapse_id, { limit: 64 }))));
}

/** The part of a record that the previews read. */
function record(item) {
  return { request: { payload: item.payload }, apns: { topic: item.bundle_id, push_type: item.push_type } };
}
