// Descriptions of the reason for a response.
import { responseText } from "./summary.js";

/** The condition of each check, in order. */
export const CHECK_NAMES = {
  method: "the method is POST", path: "the path is /3/device/TOKEN", duplicate_headers: "no header is repeated",
  credential: "a provider token or certificate is present", certificate: "the certificate is a provider certificate",
  token_update_latch: "the connection is not blocked because of too many new tokens",
  provider_token: "the provider token is well formed, its key trusted, its signature valid",
  provider_token_age: "the provider token is at most one hour old", key_environment: "the key is valid in this environment",
  connection_team: "the team is the connection's team", related_key: "the key is related to the connection's key",
  token_updates: "the provider token was not renewed too often", apns_id: "apns-id is a UUID",
  expiration: "apns-expiration is a whole number", priority: "apns-priority is 10, 5 or 1",
  collapse_id: "apns-collapse-id has at most 64 bytes", push_type: "apns-push-type is valid",
  device_token: "the device token is well formed", topic_present: "the topic is present", topic_form: "the topic is well formed",
  topic_permitted: "the credential allows the topic", topic_for_type: "the topic fits the push type",
  priority_for_type: "the priority fits the push type", payload_present: "the payload is present",
  payload_size: "the payload is not too large", payload_syntax: "the payload is JSON",
  device_environment: "the device token is for this environment", device_topic: "the device token is for this topic",
  device_expired: "the device token has not expired", device_unregistered: "the device is still registered",
  device_rate: "the device's rate limit is not exceeded", header_list_size: "the headers are not too large",
  app_permitted: "the credential's team has the app", bundle_id: "the path names a bundle id",
  broadcast_capability: "the app has the broadcast capability", request_id: "apns-request-id is a UUID",
  channel_id: "apns-channel-id is well formed", broadcast_push_type: "apns-push-type is liveactivity",
  channel_registered: "the channel exists", broadcast_expiration: "apns-expiration is present and a whole number",
  broadcast_priority: "apns-priority is 10 or 5", request_members: "the body has only known members",
  storage_policy: "message-storage-policy is 0 or 1", channel_push_type: "push-type is LiveActivity",
  channel_limit: "the app has fewer than 10,000 channels",
};

/** What the client was told, if it was no response. */
const ENDINGS = {
  refused: "The client knows that it was not processed", malformed: "The request is malformed", reset: "The server reset the stream",
  cancelled: "The client reset the stream", incomplete: "The request never became complete", disconnected: "The connection ended without a response",
  pending: "No response yet", unknown: "The end is not recorded",
};

/** Describes the response and its cause in one sentence, from the record. */
export function story(record) {
  const { verdict, fault, served = {} } = record;
  const went = ENDINGS[record.ending] ?? `Responded ${`${responseText(record)} ${served.reason ?? ""}`.trim()}`;
  if (fault) {
    const draw = typeof fault.draw === "number" && typeof fault.p === "number"
      ? ` (random draw ${fault.draw.toFixed(3)} below ${fault.p})` : "";
    const push = fault.by ? ` for push ${fault.by}` : "";
    const by = fault.profile ? `rule ${fault.rule} of ${fault.profile}` : `rule ${fault.rule}`;
    const without = verdict ? `Without it: ${verdict.status}${verdict.reason ? ` ${verdict.reason}` : ""}.` : "";
    return `${went}, by ${by}, action ${fault.action}${push}${draw}. ${without}`;
  }
  if (record.violation) return `${went}: ${record.violation}.`;
  const failed = verdict?.checks?.find((check) => !check.ok);
  if (failed) return `${went}: ${failed.detail ?? CHECK_NAMES[failed.check] ?? failed.check}.`;
  return verdict ? `${went}: all checks passed.` : `${went}.`;
}
