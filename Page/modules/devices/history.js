// The pushes to a device, newest first: which replaced which, how the badge changed, and how each was delivered.
import { button, h, table } from "../dom.js";
import { count, dayTime } from "../format.js";
import { apsOf, headline, responseText } from "../summary.js";
import { visible } from "../visible.js";

/** `page`: a page of pushes in descending order. */
export function history(page, open) {
  const rows = changes(page.items);
  return h("section", { class: "card" }, h("h3", {}, "Received pushes"), rows.length === 0 ? h("p", { class: "quiet" }, "No pushes to its device tokens.")
    : table("Received pushes", ["Push", "Time", "Content", "Delivery", h("span", { class: "cell-number" }, "Badge"), "Replaces"], rows.map(({ push, badge, replaces }) => [
        button(`#${push.seq}`, () => open(push.seq), { class: "link", data: { key: `history-${push.seq}` } }), h("td", { class: "mono" }, dayTime(push.received_at)),
        h("td", { class: "cell-text" }, visible(headline(push).text, { limit: 80 })),
        push.accepted ? push.delivery ?? "not known" : h("span", { class: "no" }, `${responseText(push)} ${push.served?.reason ?? push.outcome}`),
        h("td", { class: "cell-number" }, badge), replaces && button(`#${replaces}`, () => open(replaces), { class: "link", data: { key: `replaced-${push.seq}` }, "aria-label": `Replaces push ${replaces}` })]), { kind: "is-dense" }),
    page.next !== null && h("p", { class: "quiet" }, `The newest ${count(rows.length)} of ${page.matched === null ? "more than 10,000" : count(page.matched)} pushes.`));
}

/** For each push the badge before and after it, and the notification that it replaced by its collapse id. */
function changes(items) {
  const badges = new Map();
  const collapsed = new Map();
  return [...items].reverse().map((push) => {
    const row = { push, badge: null, replaces: null };
    if (!push.accepted || (push.delivery ?? "").startsWith("Discarded")) return row;
    const app = push.apns?.topic ?? "";
    const badge = apsOf(push)?.badge;
    if (Number.isInteger(badge)) {
      row.badge = badges.has(app) ? `${badges.get(app)} → ${badge}` : `→ ${badge}`;
      badges.set(app, badge);
    }
    if (push.apns?.collapse_id) {
      const key = `${app} ${push.apns.collapse_id}`;
      row.replaces = collapsed.get(key) ?? null;
      collapsed.set(key, push.seq);
    }
    return row;
  }).reverse();
}
