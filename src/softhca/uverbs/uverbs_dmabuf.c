/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Memory regions on a dma-buf. It is mapped into the process, and is an
 * ordinary region from then on. A dma-buf that cannot be mapped, or whose pages
 * only its driver may access, is refused. Checks are those of ib_uverbs and
 * ib_umem_dmabuf_get().
 */
#define _GNU_SOURCE
#include "uverbs.h"
#include "softhca/obj/hca_mkey.h"
#include "uverbs_mr.h"
#include "softhca/base/hca_sys.h"
#include "softhca/fabric/hca_caps.h"
#include "softhca/fabric/hca_share.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/dma-buf.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define UVERBS_DMABUF_ACCESS \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | \
     IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC | \
     IBV_ACCESS_RELAXED_ORDERING)

/* The request REG_DMABUF_MR */
struct uverbs_dmabuf {
    int fd;
    uint64_t offset, length, iova;
    uint32_t access;
};

/* Checks that @fd is a dma-buf: no other file has this ioctl. Errors are those
 * of dma_buf_get(). */
static int uverbs_dmabuf_check_fd(int fd)
{
    struct dma_buf_sync begin = {DMA_BUF_SYNC_START | DMA_BUF_SYNC_READ};
    struct dma_buf_sync end   = {DMA_BUF_SYNC_END | DMA_BUF_SYNC_READ};

    if (syscall(SYS_ioctl, fd, DMA_BUF_IOCTL_SYNC, &begin) != 0) {
        return (errno == EBADF) ? -EBADF : -EINVAL;
    }
    syscall(SYS_ioctl, fd, DMA_BUF_IOCTL_SYNC, &end);
    return 0;
}

static int uverbs_dmabuf_check(const struct uverbs_dmabuf *buf)
{
    uint64_t end;
    off_t size;
    int ret;

    if (((buf->offset ^ buf->iova) & 4095) ||
        (buf->access & ~UVERBS_DMABUF_ACCESS)) {
        return -EINVAL;
    }
    ret = uverbs_check_access(buf->access);
    if (ret != 0) {
        return ret;
    }
    if (__builtin_add_overflow(buf->offset, buf->length, &end) ||
        (buf->iova + buf->length < buf->iova)) {
        return -EINVAL;
    }
    ret = uverbs_dmabuf_check_fd(buf->fd);
    if (ret != 0) {
        return ret;
    }
    size = lseek(buf->fd, 0, SEEK_END);
    return ((buf->length == 0) || (size < 0) || ((uint64_t)size < end)) ?
               -EINVAL :
               0;
}

/* Maps the dma-buf. @return -EOPNOTSUPP if its pages cannot be faulted in:
 * peers could not access them either. */
static int uverbs_dmabuf_map(const struct uverbs_dmabuf *buf,
                             struct uverbs_mr_map *map)
{
    bool writes    = (buf->access & IBV_ACCESS_LOCAL_WRITE) != 0;
    uint64_t first = buf->offset & ~4095ull;

    map->size = (buf->offset + buf->length - first + 4095) & ~4095ull;
    map->addr = mmap(NULL, map->size,
                     writes ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED,
                     buf->fd, first);
    if (map->addr == MAP_FAILED) {
        return -EOPNOTSUPP;
    }
    if (hca_sys()->madvise(map->addr, map->size,
                           writes ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) !=
        0) {
        munmap(map->addr, map->size);
        return -EOPNOTSUPP;
    }
    /* a region of memory that was unmapped here may still be shared */
    hca_share_evict((uintptr_t)map->addr, (uintptr_t)map->addr + map->size);
    return 0;
}

static const struct uverbs_attr_spec uverbs_reg_dmabuf_attrs[] = {
    {UVERBS_ATTR_REG_DMABUF_MR_HANDLE, UVERBS_NEW, UVERBS_MANDATORY, 0, 0, 0},
    {UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE, UVERBS_IDR, UVERBS_MANDATORY, 0, 0,
     UVERBS_OBJECT_PD},
    {UVERBS_ATTR_REG_DMABUF_MR_OFFSET, UVERBS_IN, UVERBS_MANDATORY, 8, 8, 0},
    {UVERBS_ATTR_REG_DMABUF_MR_LENGTH, UVERBS_IN, UVERBS_MANDATORY, 8, 8, 0},
    {UVERBS_ATTR_REG_DMABUF_MR_IOVA, UVERBS_IN, UVERBS_MANDATORY, 8, 8, 0},
    {UVERBS_ATTR_REG_DMABUF_MR_FD, UVERBS_IN, UVERBS_MANDATORY, 4, 4, 0},
    {UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS, UVERBS_IN, UVERBS_MANDATORY, 4, 8,
     0},
    {UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY, UVERBS_OUT, UVERBS_MANDATORY, 4, 4,
     0},
    {UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY, UVERBS_OUT, UVERBS_MANDATORY, 4, 4,
     0},
};

static int uverbs_dmabuf_respond(struct uverbs_req *req,
                                 const struct uverbs_mr *mr)
{
    uint32_t key = hca_key(mr->mkey);
    int ret;

    ret = uverbs_put(req, UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY, &key, 4);
    if (ret == 0) {
        ret = uverbs_put(req, UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY, &key, 4);
    }
    return (ret != 0) ? ret :
                        uverbs_put_handle(req, UVERBS_ATTR_REG_DMABUF_MR_HANDLE,
                                          mr->obj.handle);
}

/* Makes the region, which owns @map; unmaps @map after an error. */
static int uverbs_dmabuf_new(struct uverbs_req *req,
                             const struct uverbs_dmabuf *buf,
                             const struct uverbs_mr_map *map)
{
    struct uverbs_region region = {
        .start  = (uintptr_t)map->addr + (buf->offset & 4095),
        .length = buf->length,
        .iova   = buf->iova,
        .access = buf->access,
    };
    struct uverbs_mr *mr;
    int ret;

    ret = uverbs_mr_new(
        req->ctx, uverbs_get_obj(req, UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE),
        &region, &mr);
    if (ret != 0) {
        munmap(map->addr, map->size);
        return ret;
    }
    mr->map = *map;
    ret     = uverbs_dmabuf_respond(req, mr);
    if (ret != 0) {
        uverbs_obj_destroy(&mr->obj, NULL);
    }
    return ret;
}

static int uverbs_reg_dmabuf(struct uverbs_req *req)
{
    struct uverbs_dmabuf buf = {
        .fd     = uverbs_get_const(req, UVERBS_ATTR_REG_DMABUF_MR_FD),
        .offset = uverbs_get_const(req, UVERBS_ATTR_REG_DMABUF_MR_OFFSET),
        .length = uverbs_get_const(req, UVERBS_ATTR_REG_DMABUF_MR_LENGTH),
        .iova   = uverbs_get_const(req, UVERBS_ATTR_REG_DMABUF_MR_IOVA),
        .access = uverbs_get_const(req, UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS),
    };
    struct uverbs_mr_map map;
    int ret;

    ret = hca_lacks(HCA_LACK_DMABUF) ? -EOPNOTSUPP : uverbs_dmabuf_check(&buf);
    if (ret == 0) {
        ret = uverbs_dmabuf_map(&buf, &map);
    }
    return (ret != 0) ? ret : uverbs_dmabuf_new(req, &buf, &map);
}

const struct uverbs_method uverbs_dmabuf_methods[] = {
    {.object  = UVERBS_OBJECT_MR,
     .id      = UVERBS_METHOD_REG_DMABUF_MR,
     .name    = "reg_dmabuf_mr",
     .handler = uverbs_reg_dmabuf,
     UVERBS_ATTRS(uverbs_reg_dmabuf_attrs)},
    {.handler = NULL},
};
