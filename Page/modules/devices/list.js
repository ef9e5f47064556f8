// Registered device tokens: search, pages, and a table that keeps the order and the focus while it changes.
import { get } from "../api.js";
import { button, h, replace, settled, table } from "../dom.js";
import { count, counted } from "../format.js";
import { visible } from "../visible.js";

const PAGE = 50;
const SHORT = 8; // characters at both ends of a device token

export class DeviceList {
  /** `onSelect(token)` is called with an item of the API; `onTotal(total)` after each load. */
  constructor({ onSelect, onTotal }) {
    this.onSelect = onSelect;
    this.onTotal = onTotal;
    this.starts = [null]; // the cursors of the pages up to the current one
    this.after = null; // the cursor of the next one
    this.field = h("input", { id: "device-search", type: "search", placeholder: "device, token, app or state", autocomplete: "off", spellcheck: "false",
      on: { input: settled(() => this.restart(), 250) } });
    this.notice = h("p", { class: "notice", hidden: true });
    this.table = table("Registered devices", ["Device", "App", "State", ...["Stored", "Shown"].map((name) => h("span", { class: "cell-number" }, name))], [], { kind: "is-dense", box: "device-table" });
    this.table.hidden = true;
    this.body = h("div", {}, this.notice, this.table);
    this.position = h("span", { class: "quiet", role: "status" });
    this.previous = button("Previous", () => this.turn(-1), { class: "small" });
    this.next = button("Next", () => this.turn(1), { class: "small" });
    this.element = h("div", { class: "device-list" },
      h("div", { class: "field-row" }, h("label", { for: "device-search" }, "Search"), this.field),
      this.body, h("div", { class: "pager" }, this.position, this.previous, this.next));
  }

  restart() {
    this.starts = [null];
    this.after = null;
    this.load();
  }

  turn(step) {
    // During a load, the page after it is not known.
    if (step < 0 ? this.starts.length < 2 : this.after === null) return;
    if (step < 0) this.starts.pop();
    else this.starts.push(this.after);
    this.after = null;
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
      this.drawn = null;
      this.showNotice(error.message, true);
    }
  }

  /** Shows a text instead of the rows; null shows the rows. */
  showNotice(text, isError = false) {
    this.notice.hidden = text === null;
    this.notice.classList.toggle("is-error", isError);
    replace(this.notice, text);
    this.table.hidden = text !== null;
  }

  draw({ items, next, total }, search) {
    const text = JSON.stringify([items, search]);
    if (text !== this.drawn) {
      this.drawn = text;
      this.rows = items.map((item) => ({ item, element: this.row(item) }));
      const focused = this.body.contains(document.activeElement) ? document.activeElement.dataset.token : null;
      // The box of the table keeps the focus and its scroll position.
      replace(this.table.querySelector("tbody"), this.rows.map((row) => row.element));
      this.showNotice(items.length ? null : search ? "No registered device token matches." : "No devices are registered.");
      this.mark();
      if (focused) this.focus(focused);
    }
    const first = (this.starts.length - 1) * PAGE + 1;
    replace(this.position, items.length ? `${count(first)} to ${count(first + items.length - 1)}${search ? " that match" : ` of ${counted(total, "device token")}`}` : "");
    this.previous.hidden = this.starts.length < 2;
    this.next.hidden = next === null;
  }

  row(item) {
    const app = item.bundle_id ?? item.topic;
    const token = item.token.length > 2 * SHORT + 1 ? `${item.token.slice(0, SHORT)}…${item.token.slice(-SHORT)}` : item.token;
    const name = h("button", { type: "button", class: "link", title: item.device ?? item.token, data: { token: item.token }, on: { click: () => this.onSelect(item) } },
      item.device ? visible(item.device) : h("span", { class: "mono" }, token));
    return h("tr", {},
      h("td", { class: "wrap" }, name, h("span", { class: "cell-more mono", title: item.token }, item.device ? token : "")),
      h("td", { class: "wrap" }, app ? visible(app, { limit: 200 }) : h("span", { class: "quiet" }, "any"), h("span", { class: "cell-more" }, [item.kind, item.environment].filter(Boolean).join(" · "))),
      h("td", {}, h("span", { class: `chip is-${stateOf(item)}` }, stateOf(item).replaceAll("_", " ")), item.source && h("span", { class: "cell-more", title: "As upstream answered" }, item.source)),
      h("td", { class: "cell-number" }, item.stored), h("td", { class: "cell-number" }, item.shown));
  }

  /** Marks the rows of the selected device, given by one of its tokens. */
  mark(item = this.selected) {
    this.selected = item;
    for (const row of this.rows ?? []) row.element.classList.toggle("is-chosen", Boolean(item) && (item.device ? row.item.device === item.device : row.item.token === item.token));
  }

  focus(token) {
    this.body.querySelector(`button[data-token="${CSS.escape(token)}"]`)?.focus();
  }
}

/** The state that decides what happens to a push: of the token, else of the app, else of the device. */
function stateOf(item) {
  if (item.state !== "online") return item.state;
  if (item.app_state && item.app_state !== "enabled") return item.app_state;
  return item.device_state ?? item.state;
}
