// Sample pushes of each kind.

const minute = () => Math.floor(Date.now() / 1000);

/** The name, headers and payload of each sample. `topic` is the app's bundle id. */
export const SAMPLES = [
  ["Alert", "alert", "", () => ({ aps: { alert: { title: "Order shipped", subtitle: "Parcel 4711", body: "Your parcel left the warehouse and arrives tomorrow." }, badge: 3, sound: "default", "interruption-level": "active", "thread-id": "orders" } })],
  ["Alert with localisation keys", "alert", "", () => ({ aps: { alert: { "title-loc-key": "ORDER_SHIPPED", "loc-key": "PARCEL_%@_LEFT", "loc-args": ["4711"] }, sound: "default" } })],
  ["Background", "background", "", () => ({ aps: { "content-available": 1 }, sync: "inbox" })],
  ["VoIP call", "voip", ".voip", () => ({ aps: {}, caller_name: "Ada Lovelace", call_id: "5be1c0" })],
  ["Live Activity: start", "liveactivity", ".push-type.liveactivity", () => ({ aps: { timestamp: minute(), event: "start", "attributes-type": "DeliveryAttributes", attributes: { order: 4711 }, "content-state": { stop: 3, of: 12, driver: "Grace" }, alert: { title: "On its way", body: "12 stops to go" } } })],
  ["Live Activity: update", "liveactivity", ".push-type.liveactivity", () => ({ aps: { timestamp: minute(), event: "update", "content-state": { stop: 9, of: 12, driver: "Grace" }, "stale-date": minute() + 900 } })],
  ["Live Activity: end", "liveactivity", ".push-type.liveactivity", () => ({ aps: { timestamp: minute(), event: "end", "content-state": { stop: 12, of: 12 }, "dismissal-date": minute() + 600 } })],
  ["Widgets", "widgets", ".push-type.widgets", () => ({ aps: { "content-changed": true } })],
  ["Push-to-talk", "pushtotalk", ".voip-ptt", () => ({ aps: {}, activeSpeaker: "Ada" })],
].map(([name, type, suffix, payload]) => ({
  name, payload,
  headers: (topic) => ({ "apns-topic": topic + suffix, "apns-push-type": type, ...(type === "background" ? { "apns-priority": "5" } : {}) }),
}));
