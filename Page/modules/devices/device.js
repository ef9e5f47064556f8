// A registered device: its state and that of its apps, what it shows now, and what it received.
import { get, post, put, remove } from "../api.js";
import { button, h, replace } from "../dom.js";
import { counted, tail } from "../format.js";
import { tokenSearch } from "../terms.js";
import { visible } from "../visible.js";
import { history } from "./history.js";
import { phone } from "./phone.js";

const MAX_HISTORY = 100;
const FIELDS = "seq,received_at,outcome,accepted,delivery,request.device_token,request.payload,request.payload_error,request.size,apns,served";

export class DeviceDetail {
  /** `actions`: `open(seq)`, `search(q)`, `change(promise, message)`, `close()`. */
  constructor(actions) {
    this.actions = actions;
    this.element = h("section", { class: "device-detail", "aria-label": "Device" });
    this.showNothing();
  }

  showNothing() {
    this.id = this.request = this.drawn = null;
    replace(this.element);
  }

  /** Shows the device of a registered token, or the token if it was registered alone. */
  show(item) {
    this.id = item.device ?? item.token;
    this.isToken = !item.device;
    this.drawn = null;
    return this.load();
  }

  async load() {
    const { id } = this;
    if (id === null) return;
    const request = (this.request = {});
    try {
      const path = `/devices/${encodeURIComponent(id)}`;
      const device = await get(path);
      const tokens = this.isToken ? [id] : device.apps.flatMap((app) => Object.values(app.tokens).flat()).map((token) => token.token ?? token);
      const [contents, pushes] = await Promise.all([
        this.isToken ? null : get(`${path}/notifications`),
        tokens.length ? get("/pushes", { q: tokenSearch(tokens), order: "desc", limit: MAX_HISTORY, fields: FIELDS }) : { items: [], matched: 0 },
      ]);
      if (request !== this.request) return;
      const text = JSON.stringify([device, contents, pushes.items.map((push) => [push.seq, push.outcome, push.delivery]), pushes.matched]);
      if (text === this.drawn) return;
      this.drawn = text;
      this.draw(device, contents, pushes, tokens);
    } catch (error) {
      if (request !== this.request) return;
      if (error.status === 404) this.actions.close();
      else replace(this.element, h("p", { class: "notice is-error" }, error.message));
    }
  }

  draw(device, contents, pushes, tokens) {
    const focused = this.element.contains(document.activeElement) ? document.activeElement.dataset.key ?? "" : null;
    const top = this.element.scrollTop;
    replace(this.element, this.head(device, tokens), this.isToken ? this.tokenActions(device) : device.apps.map((app) => this.app(app)),
      contents && phone(contents, pushes.items, this.actions.open),
      contents?.stored.length > 0 && h("section", { class: "card" }, h("h3", {}, "Stored for the device"),
        h("div", { class: "panel-actions" }, contents.stored.map((seq) => button(`#${seq}`, () => this.actions.open(seq), { class: "small", data: { key: `stored-${seq}` } })))),
      device.activities?.length > 0 && h("section", { class: "card" }, h("h3", {}, "Live Activities"),
        h("ul", { class: "token-list" }, device.activities.map((one) => this.activity(one)))),
      device.subscriptions?.length > 0 && h("section", { class: "card" }, h("h3", {}, "Broadcast channels"),
        h("ul", {}, device.subscriptions.map((one) => h("li", { class: "wrap" }, h("code", {}, visible(one.channel)), ` of `, visible(one.bundle_id))))),
      history(pushes, this.actions.open));
    this.element.scrollTop = top;
    if (focused !== null) this.element.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
  }

  head(device, tokens) {
    const state = this.isToken ? device.state : device.state;
    const perform = (label, action, message) => button(label, () => this.actions.change(post(`/devices/${encodeURIComponent(this.id)}/${action}`), message),
      { class: "small choice", "aria-pressed": String(state === action.replace("restrict-power", "power_restricted")), data: { key: action } });
    return h("header", { class: "device-head" },
      h("div", { class: "device-title" }, h("h3", { class: this.isToken ? "mono" : "", title: this.id }, this.isToken ? tail(this.id) : visible(this.id)),
        h("span", { class: `chip is-${state}` }, state.replaceAll("_", " ")),
        h("button", { type: "button", class: "plain device-close", "aria-label": "Close the device", data: { key: "close" }, on: { click: () => this.actions.close() } }, "✕")),
      h("div", { class: "panel-actions" }, !this.isToken && [
        perform("Online", "online", "The device is online"), perform("Offline", "offline", "The device is offline: pushes are stored"),
        perform("Low power", "restrict-power", "Low power: pushes with priority 5 or 1 are stored")],
      tokens.length > 0 && button("Show its pushes", () => this.actions.search(tokenSearch(tokens)), { class: "small", data: { key: "pushes" } }),
      button("Remove", () => this.actions.lose({ title: "Remove", label: this.isToken ? "Remove the registration" : "Remove the device", id: this.id, message: "Removed",
        question: this.isToken ? "Remove the registration of this device token? A token that is not registered is online for all topics."
          : `Remove the device with ${counted(device.apps.length, "app")} and ${counted(tokens.length, "device token")}? What it shows and what is stored for it is lost.`,
        act: () => remove(`/devices/${encodeURIComponent(this.id)}`) }), { class: "small danger", data: { key: "remove" }, "aria-label": "Remove the device" })));
  }

  tokenActions(device) {
    const facts = Object.fromEntries(["topic", "environment"].filter((name) => device[name]).map((name) => [name, device[name]]));
    const set = (label, state) => button(label, () => this.actions.change(put(`/devices/${this.id}`, { ...facts, state }), `The device token is ${state}`),
      { class: "small choice", "aria-pressed": String(device.state === state), data: { key: state } });
    return h("section", { class: "card" }, h("h3", {}, "Device token"), h("p", { class: "mono wrap" }, device.token),
      device.source && h("p", { class: "quiet" }, "Registered because of an answer of upstream."),
      h("div", { class: "panel-actions" }, set("Online", "online"), set("Unregistered", "unregistered"), set("Expired", "expired")));
  }

  activity(one) {
    const act = (label, action, message) => button(label, () => this.actions.change(post(`/devices/${one.token}/${action}`), message), { class: "small", data: { key: `${action} ${one.token}` } });
    return h("li", {}, h("span", { class: "wrap" }, visible(one.attributes_type ?? one.bundle_id, { limit: 80 })), " ",
      button(tail(one.token), () => this.actions.search(`token:${one.token}`), { class: "link mono", title: one.token, "aria-label": `Show pushes to the Live Activity ${tail(one.token)}`, data: { key: `activity-${one.token}` } }), " ",
      one.started_by && button(`#${one.started_by}`, () => this.actions.open(one.started_by), { class: "link", data: { key: `started-${one.token}` } }),
      one.dismissed_at && h("span", { class: "chip is-expired" }, "ended"),
      act("Rotate token", "rotate-activity-token", "The Live Activity has a new device token"), act("End", "end-activity", "The Live Activity has ended"));
  }

  app(app) {
    const body = { bundle_id: app.bundle_id, environment: app.environment };
    const key = `${app.bundle_id} ${app.environment}`;
    const act = (label, action, message, more = {}) => button(label, () => this.actions.change(post(`/devices/${encodeURIComponent(this.id)}/${action}`, body), message), { class: "small", data: { key: `${action} ${key}` }, ...more });
    const isRemoved = app.state === "removed";
    const tokens = Object.entries(app.tokens).flatMap(([kind, list]) => [list].flat().map((token) => ({ kind, token: token.token ?? token, end: token.expired_at ? "expired" : token.unregistered_at && "unregistered" })));
    return h("section", { class: "card app" },
      h("div", { class: "device-title" }, h("h4", { class: "wrap" }, visible(app.bundle_id)), h("span", { class: "chip" }, app.environment), h("span", { class: `chip is-${app.state}` }, app.state.replaceAll("_", " "))),
      h("ul", { class: "token-list" }, tokens.map(({ kind, token, end }) => h("li", {}, h("span", { class: "quiet" }, kind), " ",
        button(tail(token), () => this.actions.search(`token:${token}`), { class: "link mono", title: token, "aria-label": `Show pushes to the ${kind} token ${tail(token)}`, data: { key: `token-${token}` } }), end && h("span", { class: `chip is-${end}` }, end)))),
      h("div", { class: "panel-actions" },
        app.state === "force_quit" ? act("Launch", "launch", "Launched: the background push that was held is delivered")
          : !isRemoved && act("Force-quit", "force-quit", "Force-quit: the newest background push is held"),
        !isRemoved && app.state !== "force_quit" && (app.state === "enabled" ? act("Disable notifications", "disable", "Notifications are disabled") : act("Enable notifications", "enable", "Notifications are enabled")),
        !isRemoved && button("Uninstall", () => this.actions.lose({ title: "Uninstall", label: "Uninstall the app", id: this.id, message: "Uninstalled: a later push gets 410 Unregistered",
          question: `Uninstall ${app.bundle_id}? Pushes to its ${counted(tokens.length, "device token")} get 410 Unregistered.`,
          act: () => post(`/devices/${encodeURIComponent(this.id)}/uninstall`, body) }), { class: "small", data: { key: `uninstall ${key}` } }),
        act("Reinstall", "reinstall", "Reinstalled with new device tokens", { title: "Install again with new device tokens" }),
        !isRemoved && act("Start Live Activity", "start-activity", "A Live Activity has a device token")));
  }
}
