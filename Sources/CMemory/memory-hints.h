#pragma once

#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

// Advises the system to back memory with 2 MB pages. Has no effect if the system does not support them or refuses.
static inline void apns_prefer_huge_pages(void *memory, size_t count) {
#ifdef MADV_HUGEPAGE
  madvise(memory, count, MADV_HUGEPAGE);
#endif
}

// Returns to the system the freed memory that the allocator still holds. Implemented only for glibc.
static inline void apns_return_freed_memory(void) {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

// Prefetches the cache line at an address for reading or writing. Never faults. Swift has no equivalent.
static inline void apns_prefetch_for_reading(const void *address) { __builtin_prefetch(address, 0, 3); }
static inline void apns_prefetch_for_writing(const void *address) { __builtin_prefetch(address, 1, 3); }
