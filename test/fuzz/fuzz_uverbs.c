/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * libFuzzer target of the kernel's half. One input is a sequence of ioctls on a
 * newly opened device. Some are requests of libmlx5 with a few values from the
 * input, which create objects. The others are rows of the method tables with
 * random attributes, truncated write commands, and noise. After each input the
 * context is closed: nothing of it may remain in the fabric, nor
 * (LeakSanitizer) on the heap.
 *
 * Bad pointers are tested, too: addresses are in a buffer whose end is not
 * mapped, or invalid. No answer goes to an address that comes from the input,
 * as it might hit the target's own memory.
 */
#define _GNU_SOURCE
#include "fuzz_req.h"
#include "softhca/base/hca_log.h"
#include "softhca/devx/devx.h"
#include "softhca/dispatch/dispatch.h"
#include "softhca/exec/hca_nic.h"
#include "softhca/fabric/hca_arena.h"
#include "softhca/fabric/hca_chan.h"
#include "softhca/fabric/hca_dev.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FUZZ_MAX_OPS 24

int fuzz_fds[FUZZ_MAX_FDS], fuzz_num_fds;

static const struct uverbs_method *const fuzz_methods[] = {
    uverbs_context_methods, uverbs_port_methods, uverbs_pd_methods,
    uverbs_mr_methods,      uverbs_mw_methods,   uverbs_dm_methods,
    uverbs_cq_methods,      uverbs_srq_methods,  uverbs_xrcd_methods,
    uverbs_ah_methods,      uverbs_qp_methods,   uverbs_event_methods,
    uverbs_uar_methods,     uverbs_odp_methods,  devx_methods,
    devx_umem_methods,      devx_event_methods,
};

static const struct uverbs_write *const fuzz_writes[] = {
    uverbs_device_writes, uverbs_pd_writes, uverbs_mr_writes,
    uverbs_mw_writes,     uverbs_cq_writes, uverbs_srq_writes,
    uverbs_xrcd_writes,   uverbs_ah_writes, uverbs_qp_writes,
    uverbs_event_writes,
};

/* Number of live objects of the fabric, by kind. The linker's option --wrap=
 * redirects calls to the functions __wrap_*(), which count. */
static int fuzz_live[HCA_NUM_KINDS];

void *__real_hca_obj_alloc(enum hca_kind kind, unsigned dev);
void *__wrap_hca_obj_alloc(enum hca_kind kind, unsigned dev);
void __real_hca_obj_retire(enum hca_kind kind, void *obj);
void __wrap_hca_obj_retire(enum hca_kind kind, void *obj);
int64_t __real_hca_chan_create(unsigned dev, bool is_async, int *fd);
int64_t __wrap_hca_chan_create(unsigned dev, bool is_async, int *fd);

void *__wrap_hca_obj_alloc(enum hca_kind kind, unsigned dev)
{
    void *obj = __real_hca_obj_alloc(kind, dev);

    fuzz_live[kind] += (obj != NULL);
    return obj;
}

void __wrap_hca_obj_retire(enum hca_kind kind, void *obj)
{
    fuzz_live[kind]--;
    __real_hca_obj_retire(kind, obj);
}

/* Records the descriptors, which the program would close itself. */
int64_t __wrap_hca_chan_create(unsigned dev, bool is_async, int *fd)
{
    int64_t chan = __real_hca_chan_create(dev, is_async, fd);

    if ((chan >= 0) && (fuzz_num_fds < FUZZ_MAX_FDS)) {
        fuzz_fds[fuzz_num_fds++] = *fd; /* a failed answer closes it early */
    }
    return chan;
}

static const struct uverbs_attr_spec *
fuzz_spec(const struct uverbs_method *method, uint16_t id)
{
    for (unsigned i = 0; i < method->num_attrs; i++) {
        if (method->attrs[i].id == id) {
            return &method->attrs[i];
        }
    }
    return NULL;
}

/* @param twist  error to insert; 0 and above 6: none */
static void fuzz_noise_attr(struct fuzz_req *req,
                            const struct uverbs_method *method, uint16_t id,
                            unsigned twist)
{
    const struct uverbs_attr_spec *spec = fuzz_spec(method, id);
    uint8_t kind = (spec != NULL) ? spec->kind : UVERBS_OUT;
    uint16_t len = (spec != NULL) ? spec->min : fuzz_int(1);
    uint64_t addr;
    struct ib_uverbs_attr *attr;

    if (twist == 1) {
        len = fuzz_int(2);
    } else if (twist == 2) {
        len -= 1;
    }
    addr = (twist == 3) ? fuzz_addr(len) :
                          (uintptr_t)fuzz_buf + 4096 + fuzz_int(1) * 8;
    if (kind >= UVERBS_IDR) {
        attr = fuzz_attr(req, id, (twist == 2) ? 1 : 0,
                         (spec->type != 0) ? fuzz_handle(spec->type) : 0);
    } else if ((method->object == MLX5_IB_OBJECT_DEVX_UMEM) &&
               (id == MLX5_IB_ATTR_DEVX_UMEM_REG_ADDR)) {
        attr = fuzz_attr(req, id, len, addr); /* not the target's own memory */
    } else if ((kind == UVERBS_IN) && (len <= 8)) {
        static const uint8_t bytes[] = {0, 0, 1, 2};

        attr = fuzz_attr(req, id, len, 0);
        fuzz_bytes(&attr->data, (twist == 4) ? len : bytes[fuzz_below(4)]);
    } else {
        attr = fuzz_attr(req, id, len, addr);
    }
    if (twist == 5) {
        attr->flags = fuzz_int(2);
    } else if (twist == 6) {
        attr->attr_data.reserved = fuzz_int(2);
    }
}

/* Calls a row of the tables with random attributes: some of its own, some
 * omitted, some duplicated. */
static void fuzz_noise_method(int fd, uint32_t uar)
{
    const struct uverbs_method *method =
        fuzz_methods[fuzz_below(FUZZ_COUNT(fuzz_methods))];
    struct fuzz_req req = {0};
    unsigned wrong;

    (void)uar;
    for (unsigned skip = fuzz_below(6);
         (skip > 0) && (method[1].handler != NULL); skip--) {
        method++;
    }
    wrong = fuzz_below(32); /* attribute index, if there are that many */
    fuzz_bytes(fuzz_buf + 4096, fuzz_below(128));
    for (unsigned i = 0; i < method->num_attrs; i++) {
        unsigned twist = (i == wrong) ? fuzz_below(8) : 0;

        if (twist < 7) {
            fuzz_noise_attr(&req, method, method->attrs[i].id, twist);
        }
    }
    for (unsigned i = fuzz_below(8); i > 5; i--) {
        static const uint16_t ids[] = {
            UVERBS_ATTR_UHW_IN,
            UVERBS_ATTR_UHW_OUT,
            0,
            0x77,
        };
        fuzz_noise_attr(&req, method, ids[fuzz_below(FUZZ_COUNT(ids))],
                        fuzz_below(8));
    }
    fuzz_send(fd, &req, method->object, method->id);
}

/* Sends a write command with random bytes, truncated or extended. */
static void fuzz_noise_write(int fd, uint32_t uar)
{
    const struct uverbs_write *row =
        fuzz_writes[fuzz_below(FUZZ_COUNT(fuzz_writes))];
    uint8_t cmd[256];
    size_t size;

    (void)uar;
    for (unsigned skip = fuzz_below(4); (skip > 0) && (row[1].handler != NULL);
         skip--) {
        row++;
    }
    memset(cmd, 0, sizeof(cmd));
    fuzz_bytes(cmd, fuzz_int(1));
    size = row->req_size;
    if (fuzz_below(4) == 0) {
        size = (size + fuzz_below(16) - 8) % sizeof(cmd);
    }
    fuzz_command_handles(row->cmd, cmd, size);
    fuzz_write(fd, row->cmd, cmd, size);
}

/* Sends the header itself, at the end of mapped memory. */
static void fuzz_noise_header(int fd, uint32_t uar)
{
    size_t size = sizeof(struct ib_uverbs_ioctl_hdr) + fuzz_below(64);
    struct ib_uverbs_ioctl_hdr hdr;
    uint8_t *at = fuzz_buf + FUZZ_BUF_SIZE - size;

    (void)uar;
    fuzz_bytes(&hdr, sizeof(hdr));
    hdr.object_id &= 0x101f;
    hdr.method_id &= 0x1007;
    if (fuzz_below(2)) {
        hdr.reserved1 = hdr.reserved2 = 0;
        hdr.driver_id                 = RDMA_DRIVER_MLX5;
        hdr.num_attrs %= 300;
        hdr.length = sizeof(hdr) +
                     hdr.num_attrs * sizeof(struct ib_uverbs_attr);
    }
    memset(at, 0, size);
    memcpy(at, &hdr, sizeof(hdr));
    dispatch_ioctl(fd, fuzz_below(8) ? RDMA_VERBS_IOCTL : fuzz_int(4), at);
    dispatch_ioctl(fd, RDMA_VERBS_IOCTL, (void *)(uintptr_t)fuzz_addr(8));
}

static const fuzz_op fuzz_noise_ops[] = {
    fuzz_noise_method, fuzz_noise_method, fuzz_noise_method,
    fuzz_noise_write,  fuzz_noise_write,  fuzz_noise_header,
};

static void fuzz_run_op(int fd, uint32_t uar)
{
    unsigned op = fuzz_below(FUZZ_COUNT(fuzz_noise_ops) + fuzz_num_mlx5_ops);

    if (op < fuzz_num_mlx5_ops) {
        fuzz_mlx5_ops[op](fd, uar);
    } else {
        fuzz_noise_ops[op - fuzz_num_mlx5_ops](fd, uar);
    }
}

/* --- the target ---------------------------------------------------------- */
static char fuzz_dir[] = "/dev/shm/fuzz-uverbs-XXXXXX";

static void fuzz_cleanup(void)
{
    hca_fabric_detach();
    rmdir(fuzz_dir);
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    fuzz_buf = mmap(NULL, FUZZ_BUF_SIZE + 4096, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if ((fuzz_buf == MAP_FAILED) || (mkdtemp(fuzz_dir) == NULL)) {
        abort();
    }
    mprotect(fuzz_buf + FUZZ_BUF_SIZE, 4096, PROT_NONE);
    setenv("SOFTHCA_DIR", fuzz_dir, 1);
    setenv("SOFTHCA_LOG_FILE", "/dev/null", 0);
    hca_log_init();
    if (hca_fabric_attach(hca_nic_kinds, NULL) != 0) {
        abort();
    }
    atexit(fuzz_cleanup);
    fuzz_ring = hca_arena_alloc(FUZZ_RING_SIZE);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int fd       = open("/dev/zero", O_RDWR | O_CLOEXEC);
    uint32_t uar = 0;
    void *page   = MAP_FAILED;

    fuzz_input(data, size);
    if ((fd < 0) || (dispatch_open(fd, hca_dev_local(0)) != 0)) {
        abort();
    }
    if (fuzz_below(32) != 0) { /* else: without a context */
        if (fuzz_get_context(fd) != 0) {
            abort();
        }
        uar = fuzz_alloc_uar(fd, &page);
    }
    for (unsigned i = 0; (i < FUZZ_MAX_OPS) && (fuzz_left > 0); i++) {
        fuzz_run_op(fd, uar);
    }

    dispatch_close(fd);
    close(fd);
    if (page != MAP_FAILED) {
        munmap(page, 4096);
    }
    while (fuzz_num_fds > 0) {
        close(fuzz_fds[--fuzz_num_fds]);
    }
    for (unsigned kind = 0; kind < HCA_NUM_KINDS; kind++) {
        if (fuzz_live[kind] != 0) {
            fprintf(stderr, "%d objects of kind %u are left\n", fuzz_live[kind],
                    kind);
            abort();
        }
    }
    return 0;
}
