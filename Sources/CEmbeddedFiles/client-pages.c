#include "CEmbeddedFiles.h"

static const struct apns_embedded_file files[] = {
  {"A2", (const char[]) {
#embed "../../Documentation/Clients/A2.md" suffix(, 0)
  }},
  {"APNSwift", (const char[]) {
#embed "../../Documentation/Clients/APNSwift.md" suffix(, 0)
  }},
  {"Aioapns", (const char[]) {
#embed "../../Documentation/Clients/Aioapns.md" suffix(, 0)
  }},
  {"AndrewBarbaAPNS2", (const char[]) {
#embed "../../Documentation/Clients/AndrewBarbaAPNS2.md" suffix(, 0)
  }},
  {"Apnotic", (const char[]) {
#embed "../../Documentation/Clients/Apnotic.md" suffix(, 0)
  }},
  {"Apns4erl", (const char[]) {
#embed "../../Documentation/Clients/Apns4erl.md" suffix(, 0)
  }},
  {"ApnsPHP", (const char[]) {
#embed "../../Documentation/Clients/ApnsPHP.md" suffix(, 0)
  }},
  {"CorePush", (const char[]) {
#embed "../../Documentation/Clients/CorePush.md" suffix(, 0)
  }},
  {"Curl", (const char[]) {
#embed "../../Documentation/Clients/Curl.md" suffix(, 0)
  }},
  {"CurlCffi", (const char[]) {
#embed "../../Documentation/Clients/CurlCffi.md" suffix(, 0)
  }},
  {"DotAPNS", (const char[]) {
#embed "../../Documentation/Clients/DotAPNS.md" suffix(, 0)
  }},
  {"FitomadAPNS", (const char[]) {
#embed "../../Documentation/Clients/FitomadAPNS.md" suffix(, 0)
  }},
  {"Gaurun", (const char[]) {
#embed "../../Documentation/Clients/Gaurun.md" suffix(, 0)
  }},
  {"Gorush", (const char[]) {
#embed "../../Documentation/Clients/Gorush.md" suffix(, 0)
  }},
  {"Httpx", (const char[]) {
#embed "../../Documentation/Clients/Httpx.md" suffix(, 0)
  }},
  {"Kalyke", (const char[]) {
#embed "../../Documentation/Clients/Kalyke.md" suffix(, 0)
  }},
  {"NodeAPN", (const char[]) {
#embed "../../Documentation/Clients/NodeAPN.md" suffix(, 0)
  }},
  {"NodeHTTP2", (const char[]) {
#embed "../../Documentation/Clients/NodeHTTP2.md" suffix(, 0)
  }},
  {"PHPCurl", (const char[]) {
#embed "../../Documentation/Clients/PHPCurl.md" suffix(, 0)
  }},
  {"Pigeon", (const char[]) {
#embed "../../Documentation/Clients/Pigeon.md" suffix(, 0)
  }},
  {"Pushok", (const char[]) {
#embed "../../Documentation/Clients/Pushok.md" suffix(, 0)
  }},
  {"Pushy", (const char[]) {
#embed "../../Documentation/Clients/Pushy.md" suffix(, 0)
  }},
  {"PyAPNs2", (const char[]) {
#embed "../../Documentation/Clients/PyAPNs2.md" suffix(, 0)
  }},
  {"Rpush", (const char[]) {
#embed "../../Documentation/Clients/Rpush.md" suffix(, 0)
  }},
  {"SideshowAPNS2", (const char[]) {
#embed "../../Documentation/Clients/SideshowAPNS2.md" suffix(, 0)
  }},
  {0, 0},
};

const struct apns_embedded_file *apns_client_pages(void) { return files; }
