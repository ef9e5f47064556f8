#include "CEmbeddedFiles.h"

static const struct apns_embedded_file files[] = {
  {"openapi", (const char[]) {
#embed "../../Sources/AdminAPI/OpenAPI/openapi.yaml" suffix(, 0)
  }},
  {"pushes", (const char[]) {
#embed "../../Sources/AdminAPI/OpenAPI/pushes.yaml" suffix(, 0)
  }},
  {"record", (const char[]) {
#embed "../../Sources/AdminAPI/OpenAPI/record.yaml" suffix(, 0)
  }},
  {"faults", (const char[]) {
#embed "../../Sources/AdminAPI/OpenAPI/faults.yaml" suffix(, 0)
  }},
  {"fault-parts", (const char[]) {
#embed "../../Sources/AdminAPI/OpenAPI/fault-parts.yaml" suffix(, 0)
  }},
  {"control", (const char[]) {
#embed "../../Sources/AdminAPI/OpenAPI/control.yaml" suffix(, 0)
  }},
  {"control-parts", (const char[]) {
#embed "../../Sources/AdminAPI/OpenAPI/control-parts.yaml" suffix(, 0)
  }},
  {"devices", (const char[]) {
#embed "../../Sources/AdminAPI/OpenAPI/devices.yaml" suffix(, 0)
  }},
  {"channels", (const char[]) {
#embed "../../Sources/AdminAPI/OpenAPI/channels.yaml" suffix(, 0)
  }},
  {"server", (const char[]) {
#embed "../../Sources/AdminAPI/OpenAPI/server.yaml" suffix(, 0)
  }},
  {"verify", (const char[]) {
#embed "../../Sources/AdminAPI/OpenAPI/verify.yaml" suffix(, 0)
  }},
  {"findings", (const char[]) {
#embed "../../Sources/AdminAPI/OpenAPI/findings.yaml" suffix(, 0)
  }},
  {"runs", (const char[]) {
#embed "../../Sources/AdminAPI/OpenAPI/runs.yaml" suffix(, 0)
  }},
  {"send", (const char[]) {
#embed "../../Sources/AdminAPI/OpenAPI/send.yaml" suffix(, 0)
  }},
  {0, 0},
};

const struct apns_embedded_file *apns_api_description(void) { return files; }
