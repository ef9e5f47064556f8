// The device tokens of the newest pushes that are not registered. Cards keep their order while the view is open.
import { get, put, remove, urlParts } from "../api.js";
import { button, h, replace } from "../dom.js";
import { count, counted, tail } from "../format.js";
import { display } from "../preview/display.js";
import { apsOf, headline } from "../summary.js";
import { visible } from "../visible.js";

const LOOKED_AT = 500;
const SHOWN = 4;
const MAX_CARDS = 60;
const FIELDS = "seq,outcome,accepted,received_at,request.device_token,request.payload,request.payload_error,request.size,apns,served,verdict.status,verdict.reason,delivery,findings";

export class RecentTokens {
  /** `actions`: `open(seq)`, `search(q)`, `change(promise, message)`. */
  constructor(actions) {
    this.actions = actions;
    this.cards = new Map(); // by device token: {element, text}
    this.note = h("p", { class: "quiet" }, "Loading …");
    this.list = h("div", { class: "devices" });
    this.element = h("div", { class: "recent-tokens" }, this.note, this.list);
  }

  async load() {
    const page = await get("/pushes", { order: "desc", limit: LOOKED_AT, fields: FIELDS });
    const pushes = Map.groupBy(page.items.filter((push) => /^(?:[0-9a-f]{2})+$/.test(push.request?.device_token ?? "")), (push) => push.request.device_token);
    const tokens = [...pushes.keys()].slice(0, MAX_CARDS);
    const registered = [];
    for (const part of urlParts(tokens)) registered.push(...(await get("/devices", { tokens: part })).items);
    const known = new Map(tokens.map((token) => [token, registered.find((one) => one.token === token) ?? null]));
    replace(this.note, `Device tokens of ${(page.matched ?? page.total) > LOOKED_AT ? `the newest ${count(LOOKED_AT)} of ${count(page.matched ?? page.total)} pushes` : "all pushes"} that belong to no registered device${pushes.size > MAX_CARDS ? ` (${count(MAX_CARDS)} of ${count(pushes.size)})` : ""}. A token that is not registered is online for all topics.`);
    this.draw(pushes, known);
  }

  draw(pushes, known) {
    const tokens = [...known.keys()].filter((token) => !known.get(token)?.device);
    for (const [token, card] of this.cards) {
      if (tokens.includes(token)) continue;
      card.element.remove();
      this.cards.delete(token);
    }
    for (const token of tokens) {
      const items = pushes.get(token) ?? [];
      const text = JSON.stringify([known.get(token), items.map((push) => [push.seq, push.outcome])]);
      const card = this.cards.get(token) ?? { element: h("article", { class: "device", "aria-label": `Device token ${tail(token)}` }), text: null };
      // New tokens come last, so that no card moves.
      if (!this.cards.has(token)) this.list.append(card.element);
      this.cards.set(token, card);
      if (card.text !== text) this.fill(card.element, token, known.get(token), items);
      card.text = text;
    }
    this.list.querySelector(":scope > .notice")?.remove();
    if (!tokens.length) this.list.append(h("p", { class: "notice" }, "No device tokens yet."));
  }

  fill(element, token, device, pushes) {
    const focused = element.contains(document.activeElement) ? document.activeElement.dataset.key ?? "" : null;
    const state = device?.state ?? "online";
    const { shown, badge } = screen(pushes);
    const set = (next, message) => this.actions.change(put(`/devices/${token}`, { ...registration(device), state: next }), message);
    replace(element,
      h("header", {}, h("h3", { class: "mono", title: token }, tail(token)), h("span", { class: `chip is-${state}` }, state)),
      h("p", { class: "quiet wrap" }, device?.topic ? ["registered for ", visible(device.topic)] : visible(pushes[0]?.apns?.topic ?? "no topic", { limit: 120 })),
      h("div", { class: "screen" }, badge > 0 && h("span", { class: "phone-badge" }, badge), shown.length
        ? shown.slice(0, SHOWN).map((push) => h("button", { type: "button", class: "screen-line", data: { key: `push-${push.seq}` }, on: { click: () => this.actions.open(push.seq) } }, visible(headline(push).text, { limit: 80 })))
        : h("span", { class: "quiet" }, "no notifications"),
      shown.length > SHOWN && h("span", { class: "quiet" }, `and ${shown.length - SHOWN} more`)),
      h("footer", {}, button(counted(pushes.length, "push", "pushes"), () => this.actions.search(`token:${token}`), { class: "small", data: { key: "pushes" } }),
        state === "online"
          ? button("Uninstall", () => this.actions.lose({ title: "Uninstall", label: "Uninstall the app", id: device ? token : null, message: "Uninstalled: further pushes get 410 Unregistered",
            question: `Uninstall the app of ${tail(token)}? Further pushes get 410 Unregistered${device ? "" : "; Register again reverses it"}.`,
            act: () => put(`/devices/${token}`, { ...registration(device), state: "unregistered" }) }), { class: "small", title: "Further pushes get 410 Unregistered", data: { key: "state" } })
          : button("Register again", () => set("online", "Registered again"), { class: "small", data: { key: "state" } }),
        device && button("Remove", () => this.actions.lose({ title: "Remove", label: "Remove the registration", id: token, message: "Registration removed",
          question: `Remove the registration of ${tail(token)}? It is then online for all topics.`, act: () => remove(`/devices/${token}`) }), { class: "small", title: "Remove the registration: online for all topics", data: { key: "remove" } })));
    if (focused !== null) (element.querySelector(`[data-key="${CSS.escape(focused)}"]`) ?? element.querySelector("[data-key=state]"))?.focus();
  }
}

/** The registration of a device token without its state. */
function registration(device) {
  const facts = {};
  if (device?.topic) facts.topic = device.topic;
  if (device?.environment) facts.environment = device.environment;
  return facts;
}

/** The visible notifications, newest first, only the newest per collapse id; and the badge. */
function screen(pushes) {
  const collapsed = new Set();
  const shown = [];
  let badge = null;
  for (const push of pushes) {
    if (!push.accepted) continue;
    const newBadge = apsOf(push)?.badge;
    if (badge === null && Number.isInteger(newBadge)) badge = newBadge;
    if (!display(push).shows) continue;
    const key = push.apns?.collapse_id ? `${push.apns.topic} ${push.apns.collapse_id}` : null;
    if (key !== null && collapsed.has(key)) continue;
    if (key !== null) collapsed.add(key);
    shown.push(push);
  }
  return { shown, badge: badge ?? 0 };
}
