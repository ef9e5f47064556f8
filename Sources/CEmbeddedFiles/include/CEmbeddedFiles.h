#pragma once

// Files of this repository that are part of the program, embedded by the C preprocessor. SwiftPM's `embedInCode` writes
// Swift array literals instead: for these 400 KB that took 30 s of compile time and 2 MB more code.

struct apns_embedded_file {
  // The name by which the program knows the file.
  const char *name;
  // The content; ends with a null byte.
  const char *text;
};

// Each list ends with an entry without a name.

// The files of the web UI, by their paths in Page.
const struct apns_embedded_file *apns_page_files(void);
// The built-in fault profiles, in the order of the documentation.
const struct apns_embedded_file *apns_fault_profiles(void);
// The parts of the OpenAPI description of the admin API.
const struct apns_embedded_file *apns_api_description(void);
// The documentation pages of provider libraries.
const struct apns_embedded_file *apns_client_pages(void);
