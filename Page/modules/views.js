// What the page and a report share: the content of the page, the actions of its views, the sidebar, and the keys of the list.
import { showMessage } from "./copy.js";
import { replace } from "./dom.js";
import { Groups } from "./groups.js";
import * as keys from "./keys.js";
import { go, onChange, shown, TABS } from "./route.js";
import * as theme from "./theme.js";

/** What views do to the address. */
export const actions = {
  open: (push, link = null) => go({ view: "inbox", push, link, tab: shown.push === null ? "preview" : shown.tab }),
  openLink: (link) => go({ view: "inbox", push: link, link }),
  // The push of a link was found, or the link of a push: the address changes, the view does not.
  found: (push, link) => (shown.push === push || shown.push === link) && go({ push, link }, { quietly: true }),
  close: () => go({ push: null }),
  tab: (tab) => go({ tab }),
  search: (q) => go({ view: "inbox", push: null, q }),
  addCondition: (text) => go({ view: "inbox", q: shown.q.split(" ").includes(text) ? shown.q : `${shown.q} ${text}`.trim() }),
};

/** Whether the details of a push are visible. Another view keeps them for the way back. */
const isPushShown = () => shown.view === "inbox" && shown.push !== null;

export function changeTheme() {
  showMessage(`Theme: ${theme.next()}`);
}

/**
 * Shows the view of the address in `main`, now and after each change, and starts the sidebar and the keys. `panels`: those of the views
 * other than that of `inbox`; `more`: further keys; `views`: those of the sidebar. Returns a function that shows the view again, for panels that are added later.
 */
export function showViews(main, panels, inbox, { views, more = {}, home = "inbox" } = {}) {
  new Groups(document.getElementById("groups"), (field) => {
    go({ view: "inbox" });
    inbox.search.begin(field);
  }, views);
  keys.start({
    "j": () => inbox.move(1), "k": () => inbox.move(-1), "ArrowDown": () => inbox.move(1), "ArrowUp": () => inbox.move(-1),
    "Enter": () => inbox.openSelected(), "/": () => { go({ view: "inbox" }); inbox.search.focus(); },
    "y": () => isPushShown() && inbox.detail.copyID(), "t": changeTheme, "?": keys.showSheet,
    "[": () => isPushShown() && inbox.openAttempt(-1), "]": () => isPushShown() && inbox.openAttempt(1), "x": () => inbox.toggleSelected(), "c": () => inbox.toolbar.compareSelected(),
    "escape": () => inbox.reduceSelection() || (shown.push !== null ? actions.close() : go({ view: home })),
    ...Object.fromEntries(TABS.map((tab, index) => [String(index + 1), () => isPushShown() && actions.tab(tab)])), ...more,
  });
  const show = () => {
    const panel = panels[shown.view];
    document.body.dataset.view = shown.view;
    document.body.classList.toggle("has-push", isPushShown());
    if (!panel && shown.view !== "inbox") return; // It is not loaded yet.
    const element = panel?.element ?? inbox.element;
    if (main.firstChild === element) return;
    replace(main, element);
    main.scrollTop = 0;
    panel?.load();
  };
  onChange((now, before) => {
    show();
    inbox.changed(now, before);
  });
  show();
  return show;
}
