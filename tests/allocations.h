/* Counts allocations: the C library's functions are replaced by ones that count the calls from this program,
 * which has the library in it, and those of LARGE_ALLOCATION bytes or more from anywhere. What OpenMP and oneDNN
 * allocate inside is not ours to count as long as it is small: the arguments of a call. Included by one file of a
 * program. Where ALLOCATIONS_ARE_COUNTED is 0, a sanitizer has replaced those functions already, or this is not
 * the GNU C library. */
#ifndef DV_TESTS_ALLOCATIONS_H
#define DV_TESTS_ALLOCATIONS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
#define ALLOCATIONS_ARE_COUNTED 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define ALLOCATIONS_ARE_COUNTED 0
#endif
#endif
#ifndef ALLOCATIONS_ARE_COUNTED
#define ALLOCATIONS_ARE_COUNTED 1
#endif

#if ALLOCATIONS_ARE_COUNTED

enum { LARGE_ALLOCATION = 4096 };

static atomic_long allocations;

/* NOLINTBEGIN(bugprone-reserved-identifier) */
/* Where this program's code begins and ends: the linker's symbols. */
extern const char __executable_start[], etext[];

/* What the C library's own functions are called where they are replaced. */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
/* NOLINTEND(bugprone-reserved-identifier) */

#define REPLACEMENT __attribute__((visibility("default"), noinline))

static void note(const void *caller, size_t bytes) {
    bool ours = (uintptr_t)caller >= (uintptr_t)__executable_start && (uintptr_t)caller < (uintptr_t)etext;
    if (ours || bytes >= LARGE_ALLOCATION)
        atomic_fetch_add(&allocations, 1);
}

REPLACEMENT void *malloc(size_t bytes) {
    note(__builtin_return_address(0), bytes);
    return __libc_malloc(bytes);
}

REPLACEMENT void *calloc(size_t count, size_t bytes) {
    note(__builtin_return_address(0), count * bytes);
    return __libc_calloc(count, bytes);
}

REPLACEMENT void *realloc(void *memory, size_t bytes) {
    note(__builtin_return_address(0), bytes);
    return __libc_realloc(memory, bytes);
}

REPLACEMENT void *aligned_alloc(size_t alignment, size_t bytes) {
    note(__builtin_return_address(0), bytes);
    return __libc_memalign(alignment, bytes);
}

REPLACEMENT int posix_memalign(void **memory, size_t alignment, size_t bytes) {
    note(__builtin_return_address(0), bytes);
    *memory = __libc_memalign(alignment, bytes);
    return *memory ? 0 : 12;
}

REPLACEMENT void *mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset) {
    note(__builtin_return_address(0), bytes);
    return (void *)syscall(SYS_mmap, address, bytes, protection, flags, file, offset);
}

#endif

#endif
