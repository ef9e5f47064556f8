// Compares two connections: what they are, their events, and the statistics of their pushes.
import { get } from "../api.js";
import { span } from "../charts/scale.js";
import { comparison, statisticRows } from "../compare.js";
import { showError } from "../copy.js";
import { openDialog } from "../dialog.js";
import { h } from "../dom.js";
import { dayTime } from "../format.js";
import { eventName } from "./marks.js";

const ROWS = [
  ["State", (one) => one.state], ["Client", (one) => one.client], ["TLS", (one) => one.tls ?? "none"], ["Server name", (one) => one.sni ?? "–"], ["Certificate", (one) => one.certificate ?? "none"],
  ["Began", (one) => dayTime(one.events[0]?.at) || "–"], ["Lasted", (one) => lasted(one)], ["Push rate", (one) => rate(one)],
];

export async function compareConnections(both) {
  try {
    const statistics = await Promise.all(both.map((one) => get("/stats", { connection: one.id })));
    openDialog(`Compare ${both[0].id} and ${both[1].id}`, { isWide: true }, h("div", { class: "dialog-body" }, comparison("Connections side by side", both.map((one) => one.id), [
      ...ROWS.map(([name, of]) => [name, both.map((one) => String(of(one)))]), ...eventRows(both),
      // Each has one connection.
      ...statisticRows(statistics).filter(([name]) => name !== "Connections"),
    ])));
  } catch (error) {
    showError(error);
  }
}

/** The milliseconds from the first event to the last. */
function length({ events }) {
  return events.length > 1 ? Date.parse(events.at(-1).at) - Date.parse(events[0].at) : 0;
}

function lasted(connection) {
  const ms = length(connection);
  return connection.state === "open" ? "open" : ms ? span(ms) : "–";
}

function rate(connection) {
  const ms = length(connection);
  return connection.state === "closed" && ms ? `${Math.round((connection.pushes / ms) * 10000) / 10} a second` : "–";
}

/** The numbers and the details of the events by their names. */
function eventRows(both) {
  const names = [...new Set(both.flatMap((one) => one.events.map((event) => event.event)))];
  return names.map((name) => [eventName(name), both.map(({ events }) => {
    const these = events.filter((event) => event.event === name);
    const details = [...new Set(these.map((event) => event.detail).filter(Boolean))].join("; ");
    return [these.length > 1 && `${these.length} ×`, details || (these.length ? "yes" : "–")].filter(Boolean).join(" ");
  })]);
}
