// Determines whether a device displays a push, and why not. Source: Apple, "Generating a remote
// notification" and the documentation of each push type.
import { alertParts, apsOf, kindOf, object } from "../summary.js";

const isText = (value) => typeof value === "string" && value !== "";

/**
 * `{kind, shows, why, notes}`: `shows` is whether the system displays something by itself, `why` the reason if it does
 * not, `notes` are remarks.
 */
export function display(record) {
  const kind = kindOf(record);
  const notes = [];
  if (!record.apns?.push_type && !/^(pass|web|com\.apple\.mgmt)\./.test(record.apns?.topic ?? "")) {
    notes.push("apns-push-type is missing: treated as " + kind + " here. On iOS 13 and later silent pushes without it do not arrive.");
  }
  const judged = byKind(kind, record, notes);
  const arrival = notArriving(record);
  const ignored = arrival === null && judged.shows ? ignoredBy(record) : null;
  const why = arrival ?? ignored ?? judged.why;
  return { kind, shows: why === null, why, wouldShow: judged.shows, arrives: arrival === null, isIgnored: ignored !== null, isRegistered: Boolean(record.delivery), isPredicted: record.isPredicted === true, notes };
}

/** Why a registered device does not show an accepted push, by its delivery. */
const UNDELIVERED = {
  "Received by APNs": "APNs has received the push; the device has not acknowledged it yet.",
  "Stored - Device Offline": "The device is offline: the push is stored and delivered when the device is online, unless it expires or is replaced.",
  "Discarded - Token Unregistered": "The device token is not registered any more: the push is discarded.",
  "Discarded - Token Unregistered (From Storage)": "The app was removed while the push was stored: the push is discarded.",
  "Discarded - Expired": "The push expired before the device was online: it is discarded.",
  "Discarded - Disabled": "Notifications are disabled for the app: the push is discarded.",
  "Discarded - Disabled (From Storage)": "Notifications for the app were disabled while the push was stored: the push is discarded.",
};
/** Why a device that is not offline holds a push: `Stored - Power Considerations`. */
const HELD = {
  power_restricted: "The device saves power: the push is stored and delivered later, unless it expires or is replaced.",
  force_quit: "The app was force-quit: the device holds the newest background push until the app is launched.",
  background_budget: "The app has used its budget of background pushes: the device holds the newest one until the budget allows it.",
  unknown: "The device saves power, or the app was force-quit: the push is held until that ends, unless it expires or is replaced.",
};

/** What holds a push. A record does not say it; it follows from the push, except for a background push. */
function holder(record) {
  if (record.held_by) return record.held_by;
  if (record.findings?.includes("background-budget")) return "background_budget";
  return record.apns?.push_type === "background" ? "unknown" : "power_restricted";
}

/** The reason why the push does not reach a device; null if it does. */
function notArriving(record) {
  const { delivery, isPredicted } = record;
  if (!record.accepted) {
    if (record.outcome === "pending") return "The push is still delayed.";
    const reason = [record.served?.status, record.served?.reason ?? record.verdict?.reason].filter(Boolean).join(" ");
    return `APNs ${isPredicted ? "would not" : "did not"} accept this push${reason ? ` (${reason})` : ""}, so it does not reach a device.`;
  }
  if (!delivery || delivery.startsWith("Delivered")) return null;
  if (delivery.startsWith("Stored") && record.findings?.includes("overwritten-in-storage")) return "A newer push has replaced it in storage: it is never delivered.";
  if (delivery === "Received by APNs" && record.findings?.includes("overwritten-before-ack")) return "A newer push has replaced it before the device acknowledged it: it is never shown.";
  return delivery === "Stored - Power Considerations" ? HELD[holder(record)] : UNDELIVERED[delivery] ?? `${delivery}.`;
}

const IGNORED = {
  "would-not-show": "The device ignores this push: it has the finding would-not-show.",
  "background-budget": "The device ignores this push, which exceeds a budget: it has the finding background-budget.",
};

/** Why the device ignores a push that it has received, although its payload can be displayed; null if it does not. */
function ignoredBy(record) {
  return IGNORED[record.findings?.find((one) => one in IGNORED)] ?? null;
}

function byKind(kind, record, notes) {
  const payload = record.request?.payload;
  if (record.apns?.topic?.startsWith("pass.")) return pass(apsOf(record), notes);
  if (record.request?.payload_error) return nothing(`${sentence(record.request.payload_error)} The device drops it.`);
  if (kind === "mdm") return mdm(object(payload));
  if (!object(payload)) return nothing("The payload is JSON, but not an object. The device drops it.");
  const aps = apsOf(record);
  switch (kind) {
  case "background": return background(aps, record, notes);
  case "voip": return nothing("A VoIP push shows nothing by itself: it wakes the app, which must report a call immediately or is terminated.");
  case "pushtotalk": return nothing("The system wakes the app, which reports the speaker; then the system shows the conversation and plays the audio.");
  case "liveactivity": return activity(aps, record, notes);
  case "widgets": return content(aps, "widget", notes);
  case "controls": return content(aps, "control", notes);
  case "complication": return nothing("Nothing is displayed: the app on the watch gets the payload and updates its complication.");
  case "fileprovider": return nothing("Nothing is displayed: the app's file provider is notified of a changed container.");
  case "location": return nothing("Nothing is displayed: the app's location extension is woken to report the device's location.");
  default: return alert(aps, payload, notes);
  }
}

const nothing = (why) => ({ shows: false, why });

function sentence(text) {
  return `${text[0].toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;
}

function alert(aps, payload, notes) {
  if (payload.aps === undefined) return nothing("The payload has no aps: the system shows nothing, the app gets nothing.");
  if (!aps) return nothing("The value of aps is not an object: the device drops the push.");
  if (aps.badge !== undefined && !(Number.isInteger(aps.badge) && aps.badge >= 0)) notes.push("badge is not a whole number: it is ignored.");
  if (aps["mutable-content"] === 1) notes.push("mutable-content: a service extension of the app may change this before it is shown, or add a picture.");
  if (isText(aps.category)) notes.push(`The buttons of the category ${aps.category} are added, if the app has it.`);
  const parts = alertParts(aps.alert);
  for (const [part, value] of Object.entries(parts)) {
    if (value.key) notes.push(`The ${part} is looked up in the app under the key ${value.key}.`);
  }
  if (parts.title || parts.body || parts.subtitle) return { shows: true, why: null };
  if (aps.alert !== undefined && typeof aps.alert !== "string" && !object(aps.alert)) {
    return nothing("Its alert is neither a string nor an object: nothing is displayed.");
  }
  const badge = Number.isInteger(aps.badge) ? ` The badge of the app becomes ${aps.badge}.` : "";
  const sound = aps.sound !== undefined ? " A sound is played." : "";
  if (badge || sound) return nothing(`No banner is displayed: there is no text.${badge}${sound}`);
  if (aps["content-available"] === 1) {
    return nothing("Nothing is displayed: it has no text, only content-available. Sent as alert it may not arrive; use the type background.");
  }
  return nothing("Nothing is displayed: aps has neither text nor badge nor sound.");
}

function background(aps, record, notes) {
  if (!aps || aps["content-available"] !== 1) {
    return nothing("Nothing is displayed, and the app is not woken: content-available is not 1.");
  }
  if (record.apns?.priority === 10) notes.push("Priority 10 is an error for background pushes: the device may drop it. Send 5.");
  for (const key of ["alert", "sound", "badge"]) {
    if (aps[key] !== undefined) notes.push(`${key} is not allowed in a background push: send it as alert.`);
  }
  return nothing("Nothing is displayed: a background push wakes the app for about 30 seconds, two or three times an hour at most.");
}

function pass(aps, notes) {
  if (aps?.alert !== undefined) notes.push("Wallet ignores the alert of a push to a pass.");
  return nothing("Nothing is displayed: Wallet fetches the pass from its web service.");
}

/** The longest time for which a Live Activity is active, in seconds. */
const LONGEST_ACTIVITY = 8 * 3600;

/** The problem of a time in seconds; null without one. */
function timeProblem(name, value) {
  if (typeof value !== "number") return `Its ${name} is not a number: the device drops the push.`;
  return value >= 1e11 ? `Its ${name} is not in seconds: the device drops the push.` : null;
}

function activity(aps, record, notes) {
  if (!aps) return nothing("The object aps is missing: the device drops the push.");
  if (aps.timestamp === undefined) return nothing("Its timestamp is missing: the device drops the push.");
  for (const name of ["timestamp", "stale-date", "dismissal-date"]) {
    const problem = aps[name] != null && timeProblem(name, aps[name]);
    if (problem) return nothing(problem);
  }
  if (!["start", "update", "end"].includes(aps.event)) return nothing("Its event is not start, update or end: the device drops the push.");
  const age = (record.received_at ? Date.parse(record.received_at) : Date.now()) / 1000 - aps.timestamp;
  if (aps.event !== "end" && Math.abs(age) > LONGEST_ACTIVITY) {
    return nothing(`Its timestamp is more than 8 hours ${age > 0 ? "ago" : "ahead"}: the device drops the push.`);
  }
  if (!object(aps["content-state"]) && aps.event !== "end") return nothing("Its content-state is missing: the device drops the push.");
  if (aps.event === "start") {
    const missing = ["attributes-type", "attributes", "alert"].filter((key) => aps[key] === undefined);
    if (missing.length) return nothing(`To start an activity ${missing.join(", ")} must be present: the device drops the push.`);
    const texts = ["title", "body", "title-loc-key", "loc-key"];
    if (object(aps.alert) ? !texts.some((key) => aps.alert[key]) : !isText(aps.alert)) {
      return nothing("Its alert has neither title nor body: the device starts nothing.");
    }
  }
  if (aps.event !== "start" && aps.alert === undefined) notes.push("Without alert the activity changes silently.");
  notes.push("The app's views determine the appearance; this is their data.");
  return { shows: true, why: null };
}

function content(aps, what, notes) {
  if (aps?.["content-changed"] !== true) return nothing(`The ${what} is not reloaded: content-changed is not true.`);
  notes.push(`The device has a budget for reloading ${what}s; it may delay this.`);
  return nothing(`No notification is displayed: the system reloads the app's ${what}s.`);
}

function mdm(payload) {
  return typeof payload?.mdm === "string"
    ? nothing("Nothing is displayed: the device contacts its management server.")
    : nothing("Nothing is displayed, and the device does nothing: mdm, the PushMagic, is missing.");
}
