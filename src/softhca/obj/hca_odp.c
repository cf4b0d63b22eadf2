/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/* Finds missing pages of regions that are registered on demand: hca_odp.h. */
#define _GNU_SOURCE
#include "hca_odp.h"
#include "softhca/base/hca_log.h"
#include "softhca/fabric/hca_arena.h"
#include "softhca/fabric/hca_caps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HCA_ODP_DEFAULT_US 100u
#define HCA_ODP_PRESENT    (1ull << 63) /* of an entry of pagemap */
#define HCA_ODP_PAGES      64u          /* entries read at a time: bits */

/* Bits of a bitmap, log2. In a region of more pages (of 4 GiB, or the implicit
 * one) each 2^20th page has the same bit. */
#define HCA_ODP_MIN_LOG 6u
#define HCA_ODP_MAX_LOG 20u

uint64_t hca_odp_ns = HCA_ODP_DEFAULT_US * 1000ull;

static _Atomic(uint64_t) hca_odp_faults;

void hca_odp_init(void)
{
    hca_caps_us("SOFTHCA_PAGE_FAULT", &hca_odp_ns);
}

void hca_odp_count(void)
{
    atomic_fetch_add_explicit(&hca_odp_faults, 1, memory_order_relaxed);
}

uint64_t softhca_page_faults(void)
{
    return atomic_load(&hca_odp_faults);
}

/* mlx5_ib reports what the firmware has. MLNX_OFED's ibv_devinfo of a ConnectX
 * shows no UC, only sends of UD, and no receives of DC but those of SRQs. */
uint32_t hca_odp_caps(unsigned qp_type)
{
    static const uint32_t dc = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_WRITE |
                               IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC |
                               IBV_ODP_SUPPORT_SRQ_RECV;
    static const uint32_t rc     = dc | IBV_ODP_SUPPORT_RECV;
    static const uint32_t caps[] = {
        [HCA_QP_RC]       = rc,
        [HCA_QP_UC]       = 0,
        [HCA_QP_UD]       = IBV_ODP_SUPPORT_SEND,
        [HCA_QP_XRC_SEND] = rc,
        [HCA_QP_XRC_RECV] = rc,
        [HCA_QP_DCI]      = dc,
        [HCA_QP_DCT]      = dc,
    };

    if (qp_type >= sizeof(caps) / sizeof(caps[0])) {
        return 0; /* any process may have written it */
    }
    return hca_lacks(HCA_LACK_ODP_ATOMIC) ?
               caps[qp_type] & ~(uint32_t)IBV_ODP_SUPPORT_ATOMIC :
               caps[qp_type];
}

/* --- pages that the device has ------------------------------------------- */

static uint64_t hca_odp_num_bits(const struct hca_mkey *mkey)
{
    return 1ull << ((mkey->log_faulted < HCA_ODP_MAX_LOG) ? mkey->log_faulted :
                                                            HCA_ODP_MAX_LOG);
}

void hca_odp_release(struct hca_mkey *mkey)
{
    if (mkey->faulted != 0) {
        hca_arena_free(hca_ptr(mkey->faulted));
        mkey->faulted = 0;
    }
}

void hca_odp_reset(struct hca_mkey *mkey)
{
    unsigned log = HCA_ODP_MIN_LOG;

    hca_odp_release(mkey);
    if (!(mkey->access & IBV_ACCESS_ON_DEMAND)) {
        return;
    }
    while ((log < HCA_ODP_MAX_LOG) && (mkey->length / 4096 >> log != 0)) {
        log++;
    }
    mkey->log_faulted = log;
    mkey->faulted     = hca_off(hca_arena_alloc((1ul << log) / 8));
}

/* Calls @look for the bit of each page, until it returns false.
 * @return false if one did, or there is no bitmap. */
static inline bool
hca_odp_bits(const struct hca_mkey *mkey, uint64_t va, uint64_t length,
             bool (*look)(_Atomic(uint64_t) *word, uint64_t bit))
{
    _Atomic(uint64_t) *words = hca_ptr(mkey->faulted);
    uint64_t page = va / 4096, end = (va + length + 4095) / 4096;
    uint64_t mask = hca_odp_num_bits(mkey) - 1;

    while ((words != NULL) && (page < end) &&
           look(&words[(page & mask) / 64], 1ull << (page % 64))) {
        page++;
    }
    return page == end;
}

static bool hca_odp_bit_is_set(_Atomic(uint64_t) *word, uint64_t bit)
{
    return (atomic_load_explicit(word, memory_order_relaxed) & bit) != 0;
}

static bool hca_odp_bit_set(_Atomic(uint64_t) *word, uint64_t bit)
{
    atomic_fetch_or_explicit(word, bit, memory_order_relaxed);
    return true;
}

void hca_odp_mark(const struct hca_mkey *mkey, uint64_t va, uint64_t length)
{
    hca_odp_bits(mkey, va, length, hca_odp_bit_set);
}

/* --- pages that the process has ------------------------------------------ */

/* Returns a bit for each of @count pages from @page on that the process has. */
static uint64_t hca_odp_present(int fd, uint64_t page, unsigned count)
{
    uint64_t entries[HCA_ODP_PAGES], present = 0;
    ssize_t size = syscall(SYS_pread64, fd, entries, count * sizeof(*entries),
                           page * sizeof(*entries));

    for (unsigned i = 0; size >= (ssize_t)((i + 1) * sizeof(*entries)); i++) {
        present |= (uint64_t)((entries[i] & HCA_ODP_PRESENT) != 0) << i;
    }
    return present;
}

/* Returns how many of the pages up to @end are read at a time. */
static unsigned hca_odp_batch(uint64_t page, uint64_t end)
{
    return (end - page < HCA_ODP_PAGES) ? end - page : HCA_ODP_PAGES;
}

/* Says once that pages count as missing as they cannot be looked at, except of
 * a process that is gone. */
static void hca_odp_blind(const char *path)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;

    if ((errno != ENOENT) && !atomic_flag_test_and_set(&said)) {
        hca_warn("%s: %s: all accesses of peers to memory on demand take the "
                 "time of a page fault",
                 path, strerror(errno));
    }
}

/* Opens the file for each access: nothing is left to close in a process that
 * forks, and a pid is never that of another process. */
static int hca_odp_open(struct hca_owner owner)
{
    char path[32];
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)owner.pid);
    fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        hca_odp_blind(path);
    }
    return fd;
}

static bool hca_odp_is_out(struct hca_owner owner, uint64_t va, uint64_t length)
{
    uint64_t page = va / 4096, end = (va + length + 4095) / 4096;
    int fd          = hca_odp_open(owner);
    bool is_missing = (fd < 0);

    while ((page < end) && !is_missing) {
        unsigned count = hca_odp_batch(page, end);

        is_missing = (hca_odp_present(fd, page, count) !=
                      UINT64_MAX >> (HCA_ODP_PAGES - count));
        page += count;
    }
    if (fd >= 0) {
        syscall(SYS_close, fd);
    }
    return is_missing;
}

void hca_odp_mark_present(const struct hca_mkey *mkey, uint64_t va,
                          uint64_t length)
{
    uint64_t page = va / 4096, end = (va + length + 4095) / 4096;
    int fd = hca_odp_open(hca_owner(hca_self));

    if (fd < 0) {
        return;
    }
    while (page < end) {
        unsigned count   = hca_odp_batch(page, end);
        uint64_t present = hca_odp_present(fd, page, count);

        for (unsigned i = 0; i < count; i++) {
            if ((present >> i) & 1) {
                hca_odp_mark(mkey, (page + i) * 4096, 4096);
            }
        }
        page += count;
    }
    syscall(SYS_close, fd);
}

/* --- lists --------------------------------------------------------------- */

bool hca_odp_is_missing(const struct hca_sgl *sgl)
{
    for (unsigned i = 0; (hca_odp_ns != 0) && (i < sgl->count); i++) {
        uint64_t va = (uintptr_t)sgl->iov[i].iov_base;

        if ((sgl->demand[i] != NULL) &&
            (!hca_odp_bits(sgl->demand[i], va, sgl->iov[i].iov_len,
                           hca_odp_bit_is_set) ||
             hca_odp_is_out(sgl->owner, va, sgl->iov[i].iov_len))) {
            return true;
        }
    }
    return false;
}

void hca_odp_mark_sgl(const struct hca_sgl *sgl)
{
    for (unsigned i = 0; i < sgl->count; i++) {
        if (sgl->demand[i] != NULL) {
            hca_odp_mark(sgl->demand[i], (uintptr_t)sgl->iov[i].iov_base,
                         sgl->iov[i].iov_len);
        }
    }
}
