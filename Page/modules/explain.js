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

/** How the answer came to be, in one sentence, from the record alone. */
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
