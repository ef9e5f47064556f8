#include "CEmbeddedFiles.h"

static const struct apns_embedded_file files[] = {
  {"A2", (const char[]) {
#embed "../../Sources/MockAPNS/Documentation.docc/Clients/A2.md" suffix(, 0)
  }},
  {"APNSwift", (const char[]) {
#embed "../../Sources/MockAPNS/Documentation.docc/Clients/APNSwift.md" suffix(, 0)
  }},
  {"Aioapns", (const char[]) {
#embed "../../Sources/MockAPNS/Documentation.docc/Clients/Aioapns.md" suffix(, 0)
  }},
  {"AndrewBarbaAPNS2", (const char[]) {
#embed "../../Sources/MockAPNS/Documentation.docc/Clients/AndrewBarbaAPNS2.md" suffix(, 0)
  }},
  {"Apnotic", (const char[]) {
#embed "../../Sources/MockAPNS/Documentation.docc/Clients/Apnotic.md" suffix(, 0)
  }},
  {"Apns4erl", (const char[]) {
#embed "../../Sources/MockAPNS/Documentation.docc/Clients/Apns4erl.md" suffix(, 0)
  }},
  {"ApnsPHP", (const char[]) {
#embed "../../Sources/MockAPNS/Documentation.docc/Clients/ApnsPHP.md" suffix(, 0)
  }},
  {"CorePush", (const char[]) {
#embed "../../Sources/MockAPNS/Documentation.docc/Clients/CorePush.md" suffix(, 0)
  }},
  {"Curl", (const char[]) {
#embed "../../Sources/MockAPNS/Documentation.docc/Clients/Curl.md" suffix(, 0)
  }},
  {"CurlCffi", (const char[]) {
#embed "../../Sources/MockAPNS/Documentation.docc/Clients/CurlCffi.md" suffix(, 0)
  }},
  {"DotAPNS", (const char[]) {
#embed "../../Sources/MockAPNS/Documentation.docc/Clients/DotAPNS.md" suffix(, 0)
  }},
  {"FitomadAPNS", (const char[]) {
#embed "../../Sources/MockAPNS/Documentation.docc/Clients/FitomadAPNS.md" suffix(, 0)
  }},
  {"Gaurun", (const char[]) {
#embed "../../Sources/MockAPNS/Documentation.docc/Clients/Gaurun.md" suffix(, 0)
  }},
  {"Gorush", (const char[]) {
#embed "../../Sources/MockAPNS/Documentation.docc/Clients/Gorush.md" suffix(, 0)
  }},
  {"Httpx", (const char[]) {
#embed "../../Sources/MockAPNS/Documentation.docc/Clients/Httpx.md" suffix(, 0)
  }},
  {"Kalyke", (const char[]) {
#embed "../../Sources/MockAPNS/Documentation.docc/Clients/Kalyke.md" suffix(, 0)
  }},
  {"NodeAPN", (const char[]) {
#embed "../../Sources/MockAPNS/Documentation.docc/Clients/NodeAPN.md" suffix(, 0)
  }},
  {"NodeHTTP2", (const char[]) {
#embed "../../Sources/MockAPNS/Documentation.docc/Clients/NodeHTTP2.md" suffix(, 0)
  }},
  {"PHPCurl", (const char[]) {
#embed "../../Sources/MockAPNS/Documentation.docc/Clients/PHPCurl.md" suffix(, 0)
  }},
  {"Pigeon", (const char[]) {
#embed "../../Sources/MockAPNS/Documentation.docc/Clients/Pigeon.md" suffix(, 0)
  }},
  {"Pushok", (const char[]) {
#embed "../../Sources/MockAPNS/Documentation.docc/Clients/Pushok.md" suffix(, 0)
  }},
  {"Pushy", (const char[]) {
#embed "../../Sources/MockAPNS/Documentation.docc/Clients/Pushy.md" suffix(, 0)
  }},
  {"PyAPNs2", (const char[]) {
#embed "../../Sources/MockAPNS/Documentation.docc/Clients/PyAPNs2.md" suffix(, 0)
  }},
  {"Rpush", (const char[]) {
#embed "../../Sources/MockAPNS/Documentation.docc/Clients/Rpush.md" suffix(, 0)
  }},
  {"SideshowAPNS2", (const char[]) {
#embed "../../Sources/MockAPNS/Documentation.docc/Clients/SideshowAPNS2.md" suffix(, 0)
  }},
  {0, 0},
};

const struct apns_embedded_file *apns_client_pages(void) { return files; }
