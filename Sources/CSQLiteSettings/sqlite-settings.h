#pragma once

// SQLite's function for settings of the whole process. Declared here, because Swift does not import functions with a
// variable number of arguments.
int sqlite3_config(int option, ...);

// Lets SQLite not count the memory that it allocates, in the whole process. Has an effect only before the first database is
// opened, and must not be called while another thread uses SQLite.
static inline int apns_disable_sqlite_memory_statistics(void) {
  const int SQLITE_CONFIG_MEMSTATUS = 9;
  return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}
