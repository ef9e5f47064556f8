// The content of the page: the list of pushes, or the panel of a view.
import { replace } from "./dom.js";
import { onChange, shown } from "./route.js";

/**
 * Shows the view of the address in `main`, now and after each change. `panels`: those of the views other than that of `inbox`.
 * Returns a function that shows it again, for panels that are added later.
 */
export function showViews(main, panels, inbox) {
  const show = () => {
    const panel = panels[shown.view];
    document.body.dataset.view = shown.view;
    document.body.classList.toggle("has-push", shown.view === "inbox" && shown.push !== null);
    if (!panel && shown.view !== "inbox") return; // It is not loaded yet.
    const element = panel?.element ?? inbox.element;
    if (main.firstChild === element) return;
    replace(main, element);
    main.scrollTop = 0;
    panel?.load();
  };
  onChange((now, before) => {
    show();
    if (now.view === "overview" && before.view === "overview" && now.q !== before.q) panels.overview?.load();
    inbox.changed(now, before);
  });
  show();
  return show;
}
