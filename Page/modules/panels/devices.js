// Devices and channels of the fixtures, and device tokens: their state, the notifications on the screen, and controls to register and
// unregister them.
import { get, put, remove } from "../api.js";
import { showMessage, showError } from "../copy.js";
import { button, h, replace, table, throttled } from "../dom.js";
import { agoWords, fullTime, tail } from "../format.js";
import { display } from "../preview/display.js";
import { apsOf, headline } from "../summary.js";
import { visible } from "../visible.js";

const LOOKED_AT = 500;
const LISTED = 200;
const SHOWN = 4;

export class DevicesPanel {
  constructor(actions) {
    this.actions = actions;
    this.cards = h("div", { class: "devices" });
    this.registered = h("section", { hidden: true });
    this.channels = h("section", { hidden: true });
    this.element = h("section", { class: "panel", "aria-label": "Devices" },
      h("header", { class: "panel-head" }, h("h2", {}, "Devices")),
      h("p", { class: "quiet" }, "Device tokens of recent pushes and registered ones. Unregistered tokens are online for all topics."),
      this.cards, this.registered, this.channels);
    this.refresh = throttled(() => this.load(), 1500);
  }

  async load() {
    try {
      const fields = "seq,outcome,accepted,received_at,request.device_token,request.payload,request.payload_error,request.size,apns,served,verdict.status,verdict.reason";
      const [registered, channels, page] = await Promise.all([get("/devices"), get("/channels"), get("/pushes", { order: "desc", limit: LOOKED_AT, fields })]);
      this.list(registered);
      this.listChannels(channels);
      const known = new Map(registered.items.map((device) => [device.token, { device, pushes: [] }]));
      for (const push of page.items) {
        const token = push.request?.device_token;
        if (!/^(?:[0-9a-f]{2})+$/.test(token ?? "")) continue;
        if (!known.has(token)) known.set(token, { device: null, pushes: [] });
        known.get(token).pushes.push(push);
      }
      replace(this.cards, known.size === 0
        ? h("p", { class: "notice" }, "No device tokens yet.")
        : [...known].slice(0, LISTED).map(([token, { device, pushes }]) => this.card(token, device, pushes)));
    } catch (error) {
      replace(this.cards, h("p", { class: "notice" }, error.message));
    }
  }

  /** Lists the tokens of devices with their states. */
  list({ items, total }) {
    const tokens = items.filter((token) => token.device);
    this.registered.hidden = !tokens.length;
    replace(this.registered, h("h3", {}, "Registered devices"),
      table("Registered devices", ["Device", "App", "Environment", "Type", "Token", "Device state", "App state", "Token state", "Stored", "Shown"],
        tokens.slice(0, LISTED).map((token) => [
          h("code", {}, token.device), visible(token.bundle_id), token.environment, token.kind, h("code", { title: token.token }, tail(token.token)),
          token.device_state, token.app_state, token.state, token.stored, token.shown])),
      tokens.length > LISTED && h("p", { class: "quiet" }, `The first ${LISTED} of ${total} device tokens; apns-mock device ls lists all.`));
  }

  listChannels({ items, total }) {
    this.channels.hidden = !items.length;
    replace(this.channels, h("h3", {}, "Broadcast channels"),
      table("Broadcast channels", ["App", "Environment", "Channel", "Message storage policy", "Subscribers"],
        items.slice(0, LISTED).map((channel) => [
          visible(channel.bundle_id), channel.environment, h("code", {}, visible(channel.id)), channel.message_storage_policy, channel.subscribers])),
      items.length > LISTED && h("p", { class: "quiet" }, `The first ${LISTED} of ${total} channels; apns-mock channel ls lists all.`));
  }

  card(token, device, pushes) {
    const state = device?.state ?? "online";
    const { shown, badge } = screen(pushes);
    return h("article", { class: "device" },
      h("header", {}, h("h3", { class: "mono", title: token }, device?.device ? `${device.device} · ${tail(token)}` : tail(token)),
        h("span", { class: `chip is-${state}` }, state),
        device?.since && h("time", { class: "quiet", datetime: device.since, title: fullTime(device.since) }, `since ${agoWords(device.since)}`)),
      device?.topic && h("p", { class: "quiet" }, "registered for ", visible(device.topic)),
      h("div", { class: "screen" }, badge > 0 && h("span", { class: "phone-badge" }, badge), shown.length
        ? shown.slice(0, SHOWN).map((push) => h("button", { type: "button", class: "screen-line", on: { click: () => this.actions.open(push.seq) } },
          visible(headline(push).text, { limit: 80 })))
        : h("span", { class: "quiet" }, "no notifications"),
      shown.length > SHOWN && h("span", { class: "quiet" }, `and ${shown.length - SHOWN} more`)),
      h("footer", {}, button(pushes.length === 1 ? "1 push" : `${pushes.length} pushes`, () => this.actions.search(`token:${token}`), { class: "small" }),
        state === "online"
          ? button("Uninstall", () => this.uninstall(token, device), { class: "small", title: "Further pushes get 410 Unregistered" })
          : button("Register again", () => this.change(put(`/devices/${token}`, { ...registration(device), state: "online" }), "Registered again"), { class: "small" }),
        device && !device.device && button("Remove", () => this.change(remove(`/devices/${token}`), "Device removed"), { class: "small", title: "Remove the registration: online for all topics" })));
  }

  uninstall(token, device) {
    this.change(put(`/devices/${token}`, { ...registration(device), state: "unregistered" }), "Uninstalled: further pushes get 410 Unregistered");
  }

  change(done, message) {
    done.then(() => showMessage(message), showError).then(() => this.load());
  }
}

/** The registration of a device without its state. */
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
