// Registered device tokens: search, pages, and a table whose rows keep their place and the focus when they change.
import { get } from "../api.js";
import { button, h, replace, settled } from "../dom.js";
import { count, counted, tail } from "../format.js";
import { visible } from "../visible.js";

const PAGE = 50;

export class DeviceList {
  /** `onSelect(token)` is called with an item of the API; `onTotal(total)` after each load. */
  constructor({ onSelect, onTotal }) {
    this.onSelect = onSelect;
    this.onTotal = onTotal;
    this.starts = [null]; // the cursors of the pages up to the current one
    this.rows = new Map(); // by device token: {element, text}
    this.field = h("input", { id: "device-search", type: "search", placeholder: "device, token, app or state", autocomplete: "off", spellcheck: "false",
      on: { input: settled(() => this.restart(), 250) } });
    this.body = h("tbody", {});
    this.notice = h("p", { class: "notice", hidden: true });
    this.table = h("div", { class: "scroll-x device-table", tabindex: "0", role: "region", "aria-label": "Registered devices" }, h("table", { class: "table is-dense" },
      h("thead", {}, h("tr", {}, ["Device", "App", "Type", "Token", "State", "Stored", "Shown"].map((name) => h("th", { scope: "col", class: ["Stored", "Shown"].includes(name) ? "cell-number" : null }, name)))), this.body));
    this.position = h("span", { class: "quiet", role: "status" });
    this.previous = button("Previous", () => this.turn(-1), { class: "small" });
    this.next = button("Next", () => this.turn(1), { class: "small" });
    this.element = h("div", { class: "device-list" },
      h("div", { class: "field-row" }, h("label", { for: "device-search" }, "Search"), this.field),
      this.table, this.notice, h("div", { class: "pager" }, this.position, this.previous, this.next));
  }

  restart() {
    this.starts = [null];
    this.load();
  }

  turn(step) {
    if (step < 0) this.starts.pop();
    else this.starts.push(this.after);
    this.load();
  }

  async load() {
    this.loading?.abort();
    const { signal } = (this.loading = new AbortController());
    const search = this.field.value.trim();
    const after = this.starts.at(-1);
    try {
      const page = await get("/devices", { limit: PAGE, ...(search ? { search } : {}), ...(after ? { after } : {}) }, { signal });
      this.after = page.next;
      this.onTotal(page.total);
      this.draw(page, search);
    } catch (error) {
      if (error.name === "AbortError") return;
      this.notice.hidden = false;
      replace(this.notice, error.message);
    }
  }

  draw({ items, next, total }, search) {
    const tokens = new Set(items.map((item) => item.token));
    for (const [token, row] of this.rows) {
      if (tokens.has(token)) continue;
      row.element.remove();
      this.rows.delete(token);
    }
    for (const [index, item] of items.entries()) {
      const text = JSON.stringify(item);
      const row = this.rows.get(item.token) ?? { element: h("tr", {}), text: null };
      this.rows.set(item.token, row);
      if (row.text !== text) this.fill(row.element, item);
      row.text = text;
      row.item = item;
      if (this.body.children[index] !== row.element) this.body.insertBefore(row.element, this.body.children[index] ?? null);
    }
    this.mark();
    const first = (this.starts.length - 1) * PAGE + 1;
    this.notice.hidden = items.length > 0;
    this.table.hidden = items.length === 0;
    replace(this.notice, search ? "No registered device token matches." : "No devices are registered.");
    replace(this.position, items.length ? `${count(first)} to ${count(first + items.length - 1)}${search ? " that match" : ` of ${counted(total, "device token")}`}` : "");
    this.previous.hidden = this.starts.length < 2;
    this.next.hidden = next === null;
  }

  fill(element, item) {
    const hadFocus = element.contains(document.activeElement);
    const app = item.bundle_id ?? item.topic;
    replace(element,
      h("td", {}, h("button", { type: "button", class: "link", title: item.device ?? item.token, on: { click: () => this.onSelect(item) } },
        item.device ? visible(item.device) : h("span", { class: "mono" }, tail(item.token)))),
      h("td", { class: "cell-cut", title: app }, app ? visible(app, { limit: 80 }) : h("span", { class: "quiet" }, "any")), h("td", {}, item.kind ?? ""),
      h("td", { class: "mono", title: item.token }, tail(item.token)), h("td", {}, h("span", { class: `chip is-${stateOf(item)}` }, stateOf(item).replaceAll("_", " ")),
        item.source && h("span", { class: "quiet", title: "As upstream answered" }, ` ${item.source}`)),
      h("td", { class: "cell-number" }, item.stored), h("td", { class: "cell-number" }, item.shown));
    if (hadFocus) element.querySelector("button").focus();
  }

  /** Marks the rows of the selected device, given by one of its tokens. */
  mark(item = this.selected) {
    this.selected = item;
    for (const row of this.rows.values()) row.element.classList.toggle("is-chosen", Boolean(item) && (item.device ? row.item.device === item.device : row.item.token === item.token));
  }
}

/** The state that decides what happens to a push: of the token, else of the app, else of the device. */
function stateOf(item) {
  if (item.state !== "online") return item.state;
  if (item.app_state && item.app_state !== "enabled") return item.app_state;
  return item.device_state ?? item.state;
}
