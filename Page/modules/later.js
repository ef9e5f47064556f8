// What the first rows of the list do not need: the details of a push, and the other views. A script of its own, loaded after them.
import { Detail } from "./detail.js";
import { ConnectPanel } from "./panels/connect.js";
import { ConnectionsPanel } from "./panels/connections.js";
import { DevicesPanel } from "./panels/devices.js";
import { FaultsPanel } from "./panels/faults.js";
import { FindingsPanel } from "./panels/findings.js";
import { OverviewPanel } from "./panels/overview.js";
import { RunsPanel } from "./panels/runs.js";
import { actions } from "./views.js";

/** Creates the details of pushes and the panels of the views. `bar` shows what the Faults view loads. */
export function createViews(bar) {
  const [connect, overview] = [new ConnectPanel(), new OverviewPanel()];
  return {
    detail: new Detail(actions, connect.element, overview),
    panels: {
      overview, findings: new FindingsPanel(actions), connections: new ConnectionsPanel(actions), runs: new RunsPanel(actions),
      devices: new DevicesPanel(actions), faults: new FaultsPanel(actions, (profile, added) => bar.setProfile(profile, added), (clock) => bar.setClock(clock)), connect,
    },
  };
}
