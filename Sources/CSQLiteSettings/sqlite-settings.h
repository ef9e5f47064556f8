#pragma once

// SQLite's function for settings of the whole process. Declared here, because Swift does not import functions with a
// variable number of arguments.
int sqlite3_config(int option, ...);

// Disables SQLite's statistics about its memory, in the whole process. Must be called before the first database is opened,
// and not while another thread uses SQLite.
static inline int apns_disable_sqlite_memory_statistics(void) {
  const int SQLITE_CONFIG_MEMSTATUS = 9;
  return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}
