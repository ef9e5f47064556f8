// Registered devices with what they show, device tokens of recent pushes, and broadcast channels.
import { get, put } from "../api.js";
import { showMessage, showError } from "../copy.js";
import { confirmed } from "../dialog.js";
import { button, h, oneAtATime, replace, throttled } from "../dom.js";
import { count } from "../format.js";
import { ChannelList } from "../devices/channels.js";
import { DeviceDetail } from "../devices/device.js";
import { DeviceList } from "../devices/list.js";
import { RecentTokens } from "../devices/recent.js";

const INTERVAL = 3000; // milliseconds between updates while the view is shown
const PARTS = [["registered", "Registered"], ["recent", "Recent device tokens"], ["channels", "Broadcast channels"]];

export class DevicesPanel {
  constructor(actions) {
    const all = { ...actions, change: (done, message) => this.change(done, message), lose: (question) => this.lose(question), close: () => this.close() };
    this.totals = {};
    this.part = null; // chosen at the first load
    this.detail = new DeviceDetail(all);
    this.list = new DeviceList({ onSelect: (item) => this.select(item), onTotal: (total) => this.setTotal("registered", total) });
    this.recent = new RecentTokens(all);
    this.channels = new ChannelList(all, (total) => this.setTotal("channels", total));
    this.tabs = h("div", { class: "chips", role: "group", "aria-label": "Devices and channels" });
    this.registered = h("div", { class: "device-panes" }, this.list.element, this.detail.element);
    this.body = h("div", {}, h("p", { class: "notice" }, "Loading …"));
    this.notice = h("p", { class: "notice is-error", hidden: true });
    this.element = h("section", { class: "panel is-wide", "aria-label": "Devices" },
      h("header", { class: "panel-head" }, h("h2", {}, "Devices"), this.tabs), this.notice, this.body);
    this.refresh = throttled(oneAtATime(() => this.element.isConnected && this.load()), 1500);
    // No event says that another tab or a test has changed the registry.
    setInterval(() => this.element.isConnected && !document.hidden && this.refresh(), INTERVAL);
  }

  get parts() { return { registered: this.registered, recent: this.recent.element, channels: this.channels.element }; }

  setTotal(part, total) {
    if (this.totals[part] === total) return;
    this.totals[part] = total;
    this.drawTabs();
  }

  drawTabs() {
    const hadFocus = this.tabs.contains(document.activeElement);
    replace(this.tabs, PARTS.map(([part, name]) => button(this.totals[part] ? `${name} ${count(this.totals[part])}` : name, () => this.show(part), { class: "small choice", "aria-pressed": String(part === this.part) })));
    if (hadFocus) this.tabs.querySelector("[aria-pressed=true]")?.focus();
  }

  show(part) {
    this.part = part;
    replace(this.body, this.parts[part]);
    this.drawTabs();
    this.load();
  }

  async load() {
    try {
      if (this.part === null) {
        await Promise.all([this.list.load(), this.channels.load()]);
        return this.show(this.totals.registered > 0 ? "registered" : "recent");
      }
      if (this.part === "registered") await Promise.all([this.list.load(), this.detail.load()]);
      else await (this.part === "recent" ? this.recent : this.channels).load();
      this.notice.hidden = true;
    } catch (error) {
      this.notice.hidden = false;
      replace(this.notice, error.message);
      if (this.part === null) replace(this.body);
    }
  }

  select(item) {
    this.registered.classList.add("has-device");
    this.list.mark(item);
    this.detail.show(item).then(() => matchMedia("(max-width: 980px)").matches && this.detail.element.scrollIntoView({ block: "start" }));
  }

  close() {
    this.registered.classList.remove("has-device");
    const { selected } = this.list;
    const hadFocus = this.detail.element.contains(document.activeElement);
    this.list.mark(null);
    this.detail.showNothing();
    if (selected && hadFocus) this.list.focus(selected.token);
  }

  change(done, message, undo = null) {
    return done.then(() => showMessage(message, false, undo), showError).then(() => this.load());
  }

  /**
   * Asks before an action on a device or a token, and offers to undo it. `act()` returns its promise; `id` is the device or
   * token whose registration is restored, without an id it cannot be undone.
   */
  async lose({ title, question, label, act, message, id = null }) {
    if (!await confirmed({ title, question, label })) return;
    const before = id === null ? null : await get(`/devices/${encodeURIComponent(id)}`).catch(() => null);
    await this.change(act(), message, before && (() => this.change(restore(before), "The registration is restored")));
  }
}

/** Registers a device or a token as it was. */
function restore(before) {
  if (before.apps) return put("/fixtures", { devices: [{ id: before.id, state: before.state, apps: before.apps }] });
  const { token, topic, environment, state, since } = before;
  return put(`/devices/${token}`, Object.fromEntries(Object.entries({ topic, environment, state, since }).filter(([, value]) => value !== null && value !== undefined)));
}
