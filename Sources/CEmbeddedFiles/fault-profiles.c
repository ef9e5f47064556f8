#include "CEmbeddedFiles.h"

static const struct apns_embedded_file files[] = {
  {"healthy", (const char[]) {
#embed "../../FaultProfiles/healthy.yaml" suffix(, 0)
  }},
  {"flaky-503", (const char[]) {
#embed "../../FaultProfiles/flaky-503.yaml" suffix(, 0)
  }},
  {"retry-after", (const char[]) {
#embed "../../FaultProfiles/retry-after.yaml" suffix(, 0)
  }},
  {"rate-limited-429", (const char[]) {
#embed "../../FaultProfiles/rate-limited-429.yaml" suffix(, 0)
  }},
  {"unregistered-410", (const char[]) {
#embed "../../FaultProfiles/unregistered-410.yaml" suffix(, 0)
  }},
  {"expired-jwt-403", (const char[]) {
#embed "../../FaultProfiles/expired-jwt-403.yaml" suffix(, 0)
  }},
  {"token-update-storm", (const char[]) {
#embed "../../FaultProfiles/token-update-storm.yaml" suffix(, 0)
  }},
  {"bad-token-400", (const char[]) {
#embed "../../FaultProfiles/bad-token-400.yaml" suffix(, 0)
  }},
  {"wrong-environment-key", (const char[]) {
#embed "../../FaultProfiles/wrong-environment-key.yaml" suffix(, 0)
  }},
  {"brownout", (const char[]) {
#embed "../../FaultProfiles/brownout.yaml" suffix(, 0)
  }},
  {"goaway-storm", (const char[]) {
#embed "../../FaultProfiles/goaway-storm.yaml" suffix(, 0)
  }},
  {"connection-reset", (const char[]) {
#embed "../../FaultProfiles/connection-reset.yaml" suffix(, 0)
  }},
  {"shutdown-rolling", (const char[]) {
#embed "../../FaultProfiles/shutdown-rolling.yaml" suffix(, 0)
  }},
  {"tls-handshake-stall", (const char[]) {
#embed "../../FaultProfiles/tls-handshake-stall.yaml" suffix(, 0)
  }},
  {"tls-bad-certificate", (const char[]) {
#embed "../../FaultProfiles/tls-bad-certificate.yaml" suffix(, 0)
  }},
  {"single-stream", (const char[]) {
#embed "../../FaultProfiles/single-stream.yaml" suffix(, 0)
  }},
  {"stream-throttle", (const char[]) {
#embed "../../FaultProfiles/stream-throttle.yaml" suffix(, 0)
  }},
  {"half-open", (const char[]) {
#embed "../../FaultProfiles/half-open.yaml" suffix(, 0)
  }},
  {"ack-lost", (const char[]) {
#embed "../../FaultProfiles/ack-lost.yaml" suffix(, 0)
  }},
  {"odd-answers", (const char[]) {
#embed "../../FaultProfiles/odd-answers.yaml" suffix(, 0)
  }},
  {"chaos-mix", (const char[]) {
#embed "../../FaultProfiles/chaos-mix.yaml" suffix(, 0)
  }},
  {"channel-limit", (const char[]) {
#embed "../../FaultProfiles/channel-limit.yaml" suffix(, 0)
  }},
  {"broadcast-flaky", (const char[]) {
#embed "../../FaultProfiles/broadcast-flaky.yaml" suffix(, 0)
  }},
  {0, 0},
};

const struct apns_embedded_file *apns_fault_profiles(void) { return files; }
