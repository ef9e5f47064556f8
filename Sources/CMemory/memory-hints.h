#pragma once

#include <stddef.h>
#include <stdlib.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

// Returns to the system the freed memory that the allocator still holds. Implemented only for glibc.
static inline void apns_return_freed_memory(void) {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

// Lets each freed buffer of 256 KiB or more return to the system at once. glibc raises that limit to 32 MiB when large buffers
// are freed, and then keeps their memory. Measured with 1,000 bodies of 1 MiB at a time, of which 128 MiB are accepted:
// 220 MiB instead of 370 to 500. Implemented only for glibc.
static inline void apns_return_large_buffers_at_once(void) {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, 256 << 10);
#endif
}

// Prefetches the cache line at an address for reading or writing. Never faults. Swift has no equivalent.
static inline void apns_prefetch_for_reading(const void *address) { __builtin_prefetch(address, 0, 3); }
static inline void apns_prefetch_for_writing(const void *address) { __builtin_prefetch(address, 1, 3); }
