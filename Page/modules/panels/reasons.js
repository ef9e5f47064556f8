// The reasons of APNs for pushes, by their status; of each status the usual one first.

export const REASONS = {
  400: ["BadDeviceToken", "BadCollapseId", "BadExpirationDate", "BadMessageId", "BadPriority", "BadTopic", "DeviceTokenNotForTopic", "DuplicateHeaders", "IdleTimeout", "InvalidPushType",
    "MissingDeviceToken", "MissingTopic", "PayloadEmpty", "TopicDisallowed"],
  403: ["InvalidProviderToken", "BadCertificate", "BadCertificateEnvironment", "BadEnvironmentKeyIdInToken", "BadEnvironmentKeyInToken", "ExpiredProviderToken", "Forbidden", "MissingProviderToken",
    "UnrelatedKeyIdInToken"],
  404: ["BadPath"], 405: ["MethodNotAllowed"], 410: ["Unregistered", "ExpiredToken"], 413: ["PayloadTooLarge"], 429: ["TooManyRequests", "TooManyProviderTokenUpdates"],
  500: ["InternalServerError"], 503: ["ServiceUnavailable", "Shutdown"],
};

/** The status of a reason; undefined if APNs has no such reason. */
export function statusOf(reason) {
  const found = Object.entries(REASONS).find(([, reasons]) => reasons.includes(reason));
  return found && Number(found[0]);
}
