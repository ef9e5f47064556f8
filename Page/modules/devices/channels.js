// Broadcast channels: pages, a form that creates one, and removal.
import { get, post, remove } from "../api.js";
import { copy } from "../copy.js";
import { button, exclusive, h, replace, table } from "../dom.js";
import { count, counted } from "../format.js";
import { visible } from "../visible.js";

const PAGE = 50;

export class ChannelList {
  /** `actions`: `change(promise, message)`; `onTotal(total)` is called after each load. */
  constructor(actions, onTotal) {
    this.actions = actions;
    this.onTotal = onTotal;
    this.starts = [null];
    this.body = h("div", {});
    this.app = h("input", { id: "channel-app", class: "mono", spellcheck: "false", autocomplete: "off", placeholder: "com.example.app" });
    this.policy = h("select", { id: "channel-policy" }, h("option", { value: "1" }, "most recent message"), h("option", { value: "0" }, "no message"));
    const create = exclusive(() => this.create());
    this.element = h("div", { class: "channel-list" }, this.body,
      h("form", { class: "card", on: { submit: (event) => { event.preventDefault(); create(); } } }, h("h3", {}, "Create a channel"),
        h("div", { class: "field-row" }, h("label", { for: "channel-app" }, "Bundle id"), this.app, h("label", { for: "channel-policy" }, "Stores"), this.policy,
          h("button", { type: "submit", class: "primary" }, "Create a channel"))));
  }

  create() {
    return this.actions.change(post("/channels", { bundle_id: this.app.value.trim(), message_storage_policy: Number(this.policy.value) }), "Channel created");
  }

  async load() {
    const after = this.starts.at(-1);
    const page = await get("/channels", { limit: PAGE, ...(after ? { after } : {}) });
    this.onTotal(page.total);
    const text = JSON.stringify(page);
    if (text === this.drawn) return;
    this.drawn = text;
    const focused = this.body.contains(document.activeElement) ? document.activeElement.dataset.key : null;
    replace(this.body, page.items.length ? this.table(page) : h("p", { class: "notice" }, "No broadcast channels."));
    if (focused) this.body.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
  }

  table({ items, next, total }) {
    const turn = (cursor) => {
      if (cursor) this.starts.push(cursor);
      else this.starts.pop();
      this.load();
    };
    return [table("Broadcast channels", ["Channel", "App", "Environment", "Stores", "Subscribers", ""],
      items.map((channel) => [h("code", {}, visible(channel.id)), visible(channel.bundle_id, { limit: 120 }), channel.environment,
        channel.message_storage_policy === 1 ? "most recent message" : "no message", h("td", { class: "cell-number" }, count(channel.subscribers)),
        h("div", { class: "panel-actions" }, button("Copy id", () => copy(channel.id, "the channel id"), { class: "small", data: { key: `copy-${channel.id}` }, "aria-label": `Copy the id ${channel.id}` }),
          button("Remove", () => this.actions.lose({ title: "Remove", label: "Remove the channel", message: "Channel removed",
            question: `Remove the channel with ${counted(channel.subscribers, "subscriber")}? This cannot be undone.`,
            act: () => remove("/channels", { bundle_id: channel.bundle_id, environment: channel.environment, id: channel.id }) }), { class: "small", data: { key: `remove-${channel.id}` }, "aria-label": `Remove the channel ${channel.id}` }))]), { kind: "is-dense", box: "device-table" }),
    h("div", { class: "pager" }, h("span", { class: "quiet" }, `${count((this.starts.length - 1) * PAGE + 1)} to ${count((this.starts.length - 1) * PAGE + items.length)} of ${counted(total, "channel")}`),
      this.starts.length > 1 && button("Previous", () => turn(null), { class: "small" }), next && button("Next", () => turn(next), { class: "small" }))];
  }
}
