#pragma once

// Asks the processor for the cache line at an address, to read it or to write to it soon. Never faults. Swift has no word
// for it.
static inline void apns_prefetch_for_reading(const void *address) { __builtin_prefetch(address, 0, 3); }
static inline void apns_prefetch_for_writing(const void *address) { __builtin_prefetch(address, 1, 3); }
