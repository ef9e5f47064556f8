// The inbox view: search, list and the selected push; and the stream of new pushes, which can be paused.
import { ApiError, get } from "./api.js";
import { button, h, replace } from "./dom.js";
import { count } from "./format.js";
import { List } from "./list.js";
import { Records } from "./records.js";
import { go, shown } from "./route.js";
import { Search } from "./search.js";

const BATCH = 80; // milliseconds in which events are collected
const MAX_QUEUED = 2000;

export class Inbox {
  /** `callbacks`: `onPause()` is called when the state or the number of queued pushes changed, `onNew()` for new pushes. */
  constructor(detail, actions, callbacks) {
    this.detail = detail;
    this.actions = actions;
    this.callbacks = callbacks;
    this.isPaused = false;
    this.missed = false; // whether a change during a pause requires a reload
    this.unseen = 0;
    this.queued = [];
    this.batch = [];
    this.records = new Records(() => this.changedRecords());
    this.list = new List(this.records, actions.open);
    this.search = new Search();
    this.count = h("p", { class: "list-count", role: "status" });
    this.fold = button("Group retries", () => go({ fold: !shown.fold }), { class: "small choice", title: "One row for all attempts of a push" });
    this.element = h("div", { class: "inbox" },
      h("div", { class: "list-pane" }, this.search.element, h("div", { class: "list-head" }, this.count, this.fold), this.list.element), detail.element);
  }

  get waiting() {
    return this.queued.length;
  }

  /** Whether the server has not received any pushes. */
  get isFirstTime() {
    return this.records.total === 0 && this.records.evicted === 0;
  }

  /** The search query, with the condition for grouped retries. */
  get query() {
    return [shown.q, shown.fold ? "is:first" : ""].filter(Boolean).join(" ");
  }

  start() {
    this.reload();
    if (shown.push !== null) this.showPush();
  }

  changed(now, before) {
    this.fold.setAttribute("aria-pressed", String(now.fold));
    if (now.q !== before.q || now.fold !== before.fold) this.reload();
    const isBack = now.view === "inbox" && before.view !== "inbox";
    if (now.push !== before.push || now.tab !== before.tab || isBack) this.showPush();
  }

  showPush() {
    this.list.select(shown.push ?? this.list.selected);
    if (shown.push === null) {
      const hadFocus = this.detail.element.contains(document.activeElement);
      this.detail.showNothing({ isFirstTime: this.isFirstTime });
      if (hadFocus) this.list.box.focus({ preventScroll: true });
      return;
    }
    this.list.reveal(shown.push);
    this.detail.show(shown.push, shown.tab);
  }

  // Loading

  /** Loads the results of the current search. */
  reload() {
    this.fold.setAttribute("aria-pressed", String(shown.fold));
    this.follow(this.query);
    return this.load(() => {
      this.list.toTop();
      if (shown.push !== null) this.list.reveal(shown.push);
      else if (shown.view === "inbox") this.detail.showNothing({ isFirstTime: this.isFirstTime });
    });
  }

  /** Reloads the results and keeps the scroll position. For changes that the stream does not contain. */
  refresh() {
    this.missed = this.isPaused;
    if (this.isPaused) return;
    const newest = this.records.seqAt(0) ?? 0;
    this.load(() => this.list.keepPlace(this.records.countAfter(newest)));
  }

  async load(onLoaded) {
    this.queued = [];
    try {
      await this.records.load(this.query);
      this.search.showError(null);
      onLoaded();
    } catch (error) {
      if (error.name === "AbortError") return;
      if (error instanceof ApiError && error.status === 400) this.search.showError(error);
      else this.list.showNotice(h("p", { class: "notice is-error" }, "The server does not respond: ", error.message));
    }
    this.callbacks.onPause();
    this.callbacks.onNew();
  }

  changedRecords() {
    const { length, total, evicted } = this.records;
    replace(this.count, length === total || !this.query ? `${count(length)} ${length === 1 ? "push" : "pushes"}` : `${count(length)} of ${count(Math.max(total, length))} pushes`,
      evicted > 0 && `, ${count(evicted)} older ones were evicted`);
    this.list.showNotice(length ? null : this.emptyNotice());
    if (shown.fold) this.loadAttempts();
    this.list.draw();
  }

  emptyNotice() {
    if (this.query && this.records.total) {
      return h("div", { class: "empty" }, h("p", {}, "No pushes match."), button("Show all", () => go({ q: "", fold: false })));
    }
    return h("div", { class: "empty" }, h("p", {}, "No pushes yet."), h("p", { class: "quiet" }, "Pushes appear here when a provider sends them."),
      button("Connect a client", () => go({ view: "connect" }), { class: "primary" }));
  }

  /** Loads all attempts of the visible pushes, for grouped rows. */
  async loadAttempts() {
    const rows = [...this.list.drawn.values()].map((one) => one.row).filter((row) => row && row.outcome !== "accepted");
    const wanted = rows.map((row) => row.push_key).filter((key) => key && !this.list.attempts?.has(key)).slice(0, 60);
    this.list.attempts ??= new Map();
    if (!wanted.length) return;
    for (const key of wanted) this.list.attempts.set(key, null);
    const q = wanted.map((key) => `push_key:${key}`).join(" ");
    const page = await get("/pushes", { q, limit: 1000, fields: "seq,attempt,push_key,outcome,accepted,served" }).catch(() => null);
    for (const push of page?.items ?? []) {
      // A key recurs when a push is repeated much later; then the last series applies.
      const known = push.attempt === 1 ? [] : this.list.attempts.get(push.push_key) ?? [];
      this.list.attempts.set(push.push_key, [...known, push]);
    }
    this.list.draw();
  }

  // Live

  onEvent(event, record) {
    if (this.isPaused) {
      if (event === "push") this.queued.push(record);
      else this.queued = this.queued.map((one) => (one.seq === record.seq ? record : one));
      this.callbacks.onPause();
      return;
    }
    this.batch.push(record);
    this.timer ??= setTimeout(() => {
      this.timer = null;
      this.processBatch();
    }, BATCH);
  }

  processBatch() {
    let added = 0;
    for (const record of this.batch) {
      if (this.records.add(record)) added += 1;
      this.detail.update(record);
    }
    this.batch = [];
    this.records.total += added;
    if (shown.fold) this.list.attempts = null;
    this.list.grew(added);
    this.changedRecords();
    if (added && document.hidden) this.unseen += added;
    this.callbacks.onPause();
    this.callbacks.onNew();
  }

  togglePause() {
    this.isPaused = !this.isPaused;
    if (!this.isPaused) {
      const queued = this.queued;
      this.queued = [];
      if (this.missed || queued.length > MAX_QUEUED) this.refresh();
      else {
        this.batch.push(...queued);
        this.processBatch();
      }
    }
    this.callbacks.onPause();
  }

  /** Called when the page becomes visible. */
  pageShown() {
    this.unseen = 0;
    this.callbacks.onPause();
  }

  // Moving

  move(step) {
    if (shown.view !== "inbox") return;
    const seq = this.list.adjacent(step);
    if (seq === null) return;
    this.list.select(seq);
    this.list.reveal(seq);
    if (shown.push !== null) this.actions.open(seq);
  }

  openSelected() {
    if (this.list.selected !== null) this.actions.open(this.list.selected);
  }

  openAttempt(step) {
    const seq = this.detail.adjacentAttempt(step);
    if (seq !== null) this.actions.open(seq);
  }
}
