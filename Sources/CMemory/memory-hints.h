#pragma once

#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

// Asks the system to back memory with pages of 2 MB, if it has such. It may refuse, and nothing is lost.
static inline void apns_prefer_huge_pages(void *memory, size_t count) {
#ifdef MADV_HUGEPAGE
  madvise(memory, count, MADV_HUGEPAGE);
#endif
}

// Returns memory that was freed and that the allocator keeps to the system, where the allocator can be asked to.
static inline void apns_return_freed_memory(void) {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

// Asks the processor for the cache line at an address, to read it or to write to it soon. Never faults. Swift has no word
// for it.
static inline void apns_prefetch_for_reading(const void *address) { __builtin_prefetch(address, 0, 3); }
static inline void apns_prefetch_for_writing(const void *address) { __builtin_prefetch(address, 1, 3); }
