// Why a push was answered so, in sentences.
import { answerOf } from "./summary.js";

/** What each check asks, in the order they are made. */
export const CHECK_NAMES = {
  method: "the method is POST", path: "the path is /3/device/TOKEN", duplicate_headers: "no header stands twice",
  credential: "there is a provider token or certificate", certificate: "the certificate is a provider certificate",
  token_update_latch: "the connection is not shut for too many new tokens",
  provider_token: "the provider token is well formed, its key trusted, its signature valid",
  provider_token_age: "the provider token is at most an hour old", key_environment: "the key is for this environment",
  connection_team: "the team is that of the connection", related_key: "the key is related to that of the connection",
  token_updates: "the provider token was not renewed too often", apns_id: "apns-id is a UUID",
  expiration: "apns-expiration is a whole number", priority: "apns-priority is 10, 5 or 1",
  collapse_id: "apns-collapse-id has at most 64 bytes", push_type: "apns-push-type is one that exists",
  device_token: "the device token is well formed", topic_present: "there is a topic", topic_form: "the topic is well formed",
  topic_permitted: "the credential may push to the topic", topic_for_type: "topic and push type belong together",
  priority_for_type: "the priority fits the push type", payload_present: "there is a payload",
  payload_size: "the payload is not too large", payload_syntax: "the payload is JSON",
  device_environment: "the device token is of this environment", device_topic: "the device token is for this topic",
  device_expired: "the device token has not expired", device_unregistered: "the device is still registered",
  device_rate: "the device does not get too many", header_list_size: "the headers are not too large",
};

// What a provider should do (Apple: Handling notification responses from APNs).
const ADVICE = {
  BadDeviceToken: "Check that token and environment belong together; do not push to it again before it registers anew.",
  Unregistered: "Stop pushing to this device token, unless it registered again after the timestamp.",
  ExpiredToken: "Stop pushing to this device token.",
  DeviceTokenNotForTopic: "The token belongs to another app: correct the topic, keep the token.",
  TopicDisallowed: "Correct the topic, or use a credential that may push to it. Keep the device token.",
  MissingTopic: "Send apns-topic, the app's bundle id.", BadTopic: "Correct apns-topic.",
  InvalidPushType: "Correct apns-push-type, or the suffix of the topic.",
  PayloadTooLarge: "Make the payload smaller; sending it again is useless.",
  PayloadEmpty: "Send a JSON payload.", BadPriority: "Send apns-priority 10, 5 or 1 (5 for background).",
  BadMessageId: "Send apns-id as a UUID, or leave it out.", BadExpirationDate: "Send apns-expiration in whole seconds since 1970.",
  BadCollapseId: "Make apns-collapse-id at most 64 bytes long.", DuplicateHeaders: "Send each header once.",
  BadPath: "Send to /3/device/ and the device token.", MethodNotAllowed: "Use POST.",
  MissingDeviceToken: "Put the device token into the path.", MissingProviderToken: "Send a provider token, or connect with a certificate.",
  InvalidProviderToken: "Check key id, team id and private key: one of them does not fit. Repeating it does not help.",
  ExpiredProviderToken: "Make a new provider token, once, and send the push again with it.",
  TooManyProviderTokenUpdates: "Keep one token for 20 to 60 minutes; do not make another now.",
  TooManyRequests: "Send less to this device, and later; go on with the others.",
  BadEnvironmentKeyInToken: "Use a key of this environment.", BadEnvironmentKeyIdInToken: "Use a key of this environment.",
  UnrelatedKeyIdInToken: "Use a connection for each key.", BadCertificate: "Connect with a provider certificate.",
  BadCertificateEnvironment: "Use a certificate of this environment.", Forbidden: "Check what the credential may do.",
  InternalServerError: "Send it again later, waiting longer each time.", ServiceUnavailable: "Send it again later, waiting longer each time.",
  Shutdown: "Open a new connection and send it again there.", IdleTimeout: "Open a new connection and send it again there.",
};

/** What a provider should do about the answer, in one sentence. */
export function advice(record) {
  const served = record.served ?? {};
  if (record.outcome === "pending") return "Wait: it is being held. A time-out of your own is what helps here.";
  if (record.outcome === "aborted") return "The client went away before the answer: check its time-out.";
  if (served.reason && ADVICE[served.reason]) return ADVICE[served.reason];
  if (served.status === 200) return "Nothing: the push was taken.";
  if (served.status >= 500) return "Send it again later, waiting longer each time.";
  if (served.reset || served.closed || !served.status) {
    return record.accepted
      ? "The answer was lost, APNs has the push: sending it again with the same apns-collapse-id shows it once."
      : "Open a new stream or connection and send it again.";
  }
  return "Correct the request; sending the same again is useless.";
}

/** How the answer came to be, in one sentence. */
export function story(record) {
  const { verdict, fault, served = {} } = record;
  const went = record.outcome === "pending" ? "nothing went out yet" : `${answerOf(record)} ${served.reason ?? ""}`.trim() + " went out";
  if (fault) {
    const draw = typeof fault.draw === "number" && typeof fault.p === "number"
      ? ` (drew ${fault.draw.toFixed(3)}, under ${fault.p})` : "";
    const by = fault.profile ? `rule ${fault.rule} of ${fault.profile}` : `rule ${fault.rule}`;
    const without = verdict ? `Without it: ${verdict.status}${verdict.reason ? ` ${verdict.reason}` : ""}.` : "";
    return `${went[0].toUpperCase()}${went.slice(1)}, by ${by}, action ${fault.action}${draw}. ${without}`;
  }
  const failed = verdict?.checks?.find((check) => !check.ok);
  if (failed) return `${went[0].toUpperCase()}${went.slice(1)}: ${failed.detail ?? CHECK_NAMES[failed.check] ?? failed.check}.`;
  return `${went[0].toUpperCase()}${went.slice(1)}: every check passed.`;
}
