/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Memory of a GPU that does not exist: pages of a file, at addresses where a
 * load or a store of the program is a SIGSEGV. Devices reach them by the file,
 * which stands in for a dma-buf; and by the address, if DCX_TEST_PEER_MEM=y, as
 * if the kernel had peer memory for ROCm. Included by one source of a program,
 * as it replaces functions of libc and libibverbs.
 */
#ifndef DCX_TEST_FAKE_GPU_H
#define DCX_TEST_FAKE_GPU_H

#include "dmabuf_file.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <map>
#include <mutex>
#include <stdexcept>
#include <sys/mman.h>
#include <unistd.h>

extern "C" {
#include <ucm/api/ucm.h>
#include <ucs/memory/memory_type.h>
#include <ucs/memory/memtype_cache.h>
#include <ucs/sys/topo/base/topo.h>
#include <uct/api/version.h>
#include "fake_gpu_ucx.h"

/* Exported by libucm, but declared in no installed header */
void ucm_event_dispatch(ucm_event_type_t event_type, ucm_event_t *event);
}

class fake_gpu {
public:
    static constexpr ucs_memory_type_t TYPE = UCS_MEMORY_TYPE_ROCM;

    /* @length: a multiple of the page */
    explicit fake_gpu(size_t size) :
        length(size), fd(make(size)), addr((uint8_t *)map(PROT_NONE)),
        pages((uint8_t *)map(PROT_READ | PROT_WRITE))
    {
        {
            std::lock_guard<std::mutex> guard(lock());
            all()[addr] = this;
        }
        announce(addr, length);
    }

    ~fake_gpu()
    {
        announce_free();
        {
            std::lock_guard<std::mutex> guard(lock());
            all().erase(addr);
        }
        munmap(addr, length);
        munmap(pages, length);
        close(fd);
    }

    fake_gpu(const fake_gpu &) = delete;

    /* Tells UCX that memory is a GPU's; host memory, too, for tests that only
     * look at the type. UCX has flags of memory types since 1.22. */
    static void announce(void *begin, size_t size)
    {
        if (!has_types()) {
            return;
        }
#if UCT_VERNO_MINOR >= 22
        ucs_memtype_cache_update(begin, size, TYPE, UCS_SYS_DEVICE_ID_UNKNOWN,
                                 UCS_MEM_FLAG_REGISTRABLE);
#else
        ucs_memtype_cache_update(begin, size, TYPE, UCS_SYS_DEVICE_ID_UNKNOWN);
#endif
    }

    /* Tells UCX that the memory is no longer a GPU's. */
    void announce_free()
    {
        ucm_event_t event = {};

        event.mem_type.address  = addr;
        event.mem_type.size     = length;
        event.mem_type.mem_type = TYPE;
        ucm_event_dispatch(UCM_EVENT_MEM_TYPE_FREE, &event);
        if (has_types()) {
            ucs_memtype_cache_remove(addr, length);
        }
    }

    static bool has_peer_mem()
    {
        const char *value = getenv("DCX_TEST_PEER_MEM");

        return (value != NULL) && !strcmp(value, "y");
    }

    /* Returns the memory with this byte, or NULL. */
    static fake_gpu *find(const void *place)
    {
        std::lock_guard<std::mutex> guard(lock());
        auto after = all().upper_bound((uint8_t *)place);

        if (after == all().begin()) {
            return NULL;
        }
        fake_gpu *gpu = std::prev(after)->second;
        return ((uint8_t *)place < gpu->addr + gpu->length) ? gpu : NULL;
    }

    const size_t length;
    const int fd;
    uint8_t *const addr;  /* for operations */
    uint8_t *const pages; /* for the test, and code of the GPU */

private:
    static std::map<uint8_t *, fake_gpu *> &all()
    {
        static std::map<uint8_t *, fake_gpu *> all;

        return all;
    }

    static std::mutex &lock()
    {
        static std::mutex lock;

        return lock;
    }

    /* Returns false with UCX_MEMTYPE_CACHE=n; makes the cache. */
    static bool has_types()
    {
        ucs_memory_info_t info;

        return ucs_memtype_cache_lookup(&info, 1, &info) != UCS_ERR_UNSUPPORTED;
    }

    static int make(size_t size)
    {
        int fd = memfd_create("fake_gpu", MFD_CLOEXEC);

        if ((fd < 0) || (ftruncate(fd, size) != 0)) {
            throw std::runtime_error("no memory for a fake GPU");
        }
        dmabuf_file::mark(fd);
        return fd;
    }

    void *map(int prot)
    {
        void *place = mmap(NULL, length, prot, MAP_SHARED, fd, 0);

        if (place == MAP_FAILED) {
            throw std::runtime_error("a fake GPU cannot be mapped");
        }
        return place;
    }
};

/* --- as UCX sees it: fake_gpu_ucx.h --------------------------------------- */

extern "C" int fake_gpu_has(const void *address)
{
    return fake_gpu::find(address) != NULL;
}

extern "C" void *fake_gpu_place(const void *address)
{
    fake_gpu *gpu = fake_gpu::find(address);

    return (gpu == NULL) ? (void *)address :
                           gpu->pages + ((uint8_t *)address - gpu->addr);
}

extern "C" void *fake_gpu_range(const void *address, size_t *length, int *fd_p)
{
    fake_gpu *gpu = fake_gpu::find(address);

    *length = gpu->length;
    if (fd_p != NULL) {
        *fd_p = dup(gpu->fd);
    }
    return gpu->addr;
}

/* --- a kernel with peer memory ------------------------------------------- */

extern "C" int access(const char *path, int mode) noexcept
{
    static auto real = (int (*)(const char *, int))dlsym(RTLD_NEXT, "access");

    return (fake_gpu::has_peer_mem() && !strcmp(path, "/dev/kfd")) ?
               0 :
               real(path, mode);
}

/* Registers memory of a GPU by its file. The kernel takes such memory on
 * demand, too, and only fails when the device faults. */
static struct ibv_mr *fake_gpu_reg(struct ibv_pd *pd, fake_gpu *gpu, void *addr,
                                   size_t length, uint64_t iova,
                                   unsigned access)
{
    struct ibv_mr *mr = ibv_reg_dmabuf_mr(pd, (uint8_t *)addr - gpu->addr,
                                          length, iova, gpu->fd,
                                          access & ~IBV_ACCESS_ON_DEMAND);

    if (mr != NULL) {
        mr->addr = addr;
    }
    return mr;
}

/* ibv_reg_mr() is a macro that calls one of these, by the access. */
#undef ibv_reg_mr

extern "C" struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr,
                                     size_t length, int access)
{
    static auto real = (decltype(&ibv_reg_mr))dlsym(RTLD_NEXT, "ibv_reg_mr");
    fake_gpu *gpu    = fake_gpu::has_peer_mem() ? fake_gpu::find(addr) : NULL;

    return (gpu == NULL) ?
               real(pd, addr, length, access) :
               fake_gpu_reg(pd, gpu, addr, length, (uintptr_t)addr, access);
}

extern "C" struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr,
                                           size_t length, uint64_t iova,
                                           unsigned access)
{
    static auto real = (decltype(&ibv_reg_mr_iova2))dlsym(RTLD_NEXT,
                                                          "ibv_reg_mr_iova2");
    fake_gpu *gpu    = fake_gpu::has_peer_mem() ? fake_gpu::find(addr) : NULL;

    return (gpu == NULL) ? real(pd, addr, length, iova, access) :
                           fake_gpu_reg(pd, gpu, addr, length, iova, access);
}

#endif
