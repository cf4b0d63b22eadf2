/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Base of tests of strided mkeys: dcx's keys on the device of verbs_bench.h,
 * and layouts for them.
 */
#ifndef DCX_TEST_DCX_KEY_BENCH_H
#define DCX_TEST_DCX_KEY_BENCH_H

#include "devx_bench.h"
#include "umr_bench.h"

#include <ucs/config/types.h>
#include <ucs/sys/topo/base/topo.h>
#include <ucs/time/time.h>
#include <ucs/type/cpu_set.h>

extern "C" {
#include "uct/dcx/strided/dcx_key.h"
}

/* A layout, built from a list of entries */
class dcx_layout {
public:
    dcx_layout(uct_dcx_sgl_kind_t kind, uint32_t repeat,
               const std::vector<uct_dcx_sgl_entry_t> &entries,
               uint32_t access = IBV_ACCESS_LOCAL_WRITE)
    {
        m_bytes.resize(uct_dcx_sgl_size(entries.size()) / sizeof(uint64_t));
        get()->kind   = kind;
        get()->repeat = repeat;
        get()->access = access;
        get()->num    = entries.size();
        for (size_t i = 0; i < entries.size(); i++) {
            get()->entries[i] = entries[i];
            get()->length += (uint64_t)entries[i].bytes * repeat;
            get()->hash = get()->hash * 31 + entries[i].addr + entries[i].bytes;
        }
    }

    uct_dcx_sgl_t *get() { return (uct_dcx_sgl_t *)m_bytes.data(); }

    uct_dcx_sgl_t *operator->() { return get(); }

private:
    std::vector<uint64_t> m_bytes;
};

/* Sets the time after which the UMR queue counts as failed if it makes no
 * progress. */
inline void dcx_key_set_timeout(uct_dcx_keys_t &keys, int ms)
{
    keys.timeout = ucs_time_from_msec(time_slow(ms));
}

/* Hides the doorbells of a UMR queue from the device until end(). */
class dcx_umr_silence {
public:
    explicit dcx_umr_silence(uct_dcx_keys_t &keys) :
        m_keys(keys), m_dbrec(keys.umr.qp.sq.dbrec), m_bf(keys.umr.qp.sq.bf)
    {
        uct_dcx_bf_init(&m_nowhere, m_register, 0);
        keys.umr.qp.sq.dbrec = &m_record;
        keys.umr.qp.sq.bf    = &m_nowhere;
    }

    ~dcx_umr_silence() { end(); }

    dcx_umr_silence(const dcx_umr_silence &) = delete;

    /* Rings all hidden doorbells, once. */
    void end()
    {
        uct_dcx_sq_t *sq = &m_keys.umr.qp.sq;

        if (sq->dbrec != &m_record) {
            return;
        }
        ucs_spin_lock(&m_keys.lock);
        sq->dbrec = m_dbrec;
        sq->bf    = m_bf;
        uct_dcx_to_device_barrier();
        *sq->dbrec = htobe32(m_keys.umr.rung);
        uct_dcx_wc_start();
        uct_dcx_bf_ring(sq->bf, m_keys.umr.doorbell);
        ucs_spin_unlock(&m_keys.lock);
    }

private:
    uct_dcx_keys_t &m_keys;
    volatile __be32 *m_dbrec;
    uct_dcx_bf_t *m_bf;
    uct_dcx_bf_t m_nowhere;
    volatile __be32 m_record = 0;
    alignas(64) uint8_t m_register[64];
};

class dcx_key_test : public verbs_test {
protected:
    static constexpr uint32_t remote = IBV_ACCESS_LOCAL_WRITE |
                                       IBV_ACCESS_REMOTE_READ |
                                       IBV_ACCESS_REMOTE_WRITE;

    /* Rows of 16 bytes in dst, at distances of 64 bytes */
    dcx_layout rows(uint32_t repeat, uint32_t offset = 0,
                    uint32_t access = IBV_ACCESS_LOCAL_WRITE)
    {
        return dcx_layout(
            UCT_DCX_SGL_INTERLEAVED, repeat,
            {{(uintptr_t)dst.addr + offset, 16, 64, dst.mr->lkey, 0}}, access);
    }

    /* The first @length bytes of @mem, for remote access */
    static dcx_layout piece(const strict_mem &mem, uint32_t length)
    {
        return dcx_layout(UCT_DCX_SGL_LIST, 1,
                          {{(uintptr_t)mem.addr, length, 0, mem.mr->lkey, 0}},
                          remote);
    }

    /* @num single bytes of dst: every other one, from @offset */
    dcx_layout list(uint32_t num, uint32_t offset = 0)
    {
        std::vector<uct_dcx_sgl_entry_t> entries;

        for (uint32_t i = 0; i < num; i++) {
            entries.push_back(
                {(uintptr_t)dst.addr + offset + 2 * i, 1, 0, dst.mr->lkey, 0});
        }
        return dcx_layout(UCT_DCX_SGL_LIST, 1, entries);
    }

    /* The keys of a domain, opened */
    struct keys_t {
        keys_t(const hca_device &hca, unsigned max_keys, unsigned max_owned = 0,
               uct_dcx_async_t *async = NULL)
        {
            uct_dcx_keys_params_t params = {};
            uct_dcx_devx_path_t path     = {};

            dev.ctx            = hca.ctx;
            dev.pd             = hca.pd;
            dev.pdn            = devx_pdn(hca.pd);
            dev.has_devx       = 1;
            dev.umr            = {.has_keys   = 1,
                                  .has_rows   = 1,
                                  .has_nests  = 1,
                                  .max_depth  = 4,
                                  .max_klm    = 64,
                                  .max_inline = UCT_DCX_UMR_MAX_INLINE,
                                  .fence      = PRM_UMR_FENCE_STRONG};
            params.dev         = &dev;
            params.async       = async;
            params.max_keys    = max_keys;
            params.max_owned   = max_owned;
            params.max_entries = 1024;
            HCA_CHECK_CALL(uct_dcx_keys_init(&keys, &params) == UCS_OK);
            path.mtu      = IBV_MTU_1024;
            path.ads.port = 1;
            path.ads.rlid = htobe16(hca.port.lid);
            HCA_CHECK_CALL(uct_dcx_keys_open(&keys, &path) == UCS_OK);
        }

        ~keys_t() { uct_dcx_keys_cleanup(&keys); }

        ucs_status_t try_get(dcx_layout &layout, uct_dcx_key_t **key)
        {
            return uct_dcx_keys_get(&keys, layout.get(), 0, key);
        }

        /* Waits until a key has the layout. Returns UCS_OK and the key, or the
         * error. */
        ucs_status_t wait(dcx_layout &layout, uct_dcx_key_t **key)
        {
            dcx_deadline deadline;
            ucs_status_t status;

            while ((status = try_get(layout, key)) == UCS_ERR_NO_RESOURCE) {
                deadline.check("a layout");
            }
            return status;
        }

        uct_dcx_key_t *get(dcx_layout &layout)
        {
            uct_dcx_key_t *key = NULL;

            EXPECT_EQ(UCS_OK, wait(layout, &key));
            return key;
        }

        /* Gets the key of a layout and releases it. Returns its number. */
        uint32_t touch(dcx_layout &layout)
        {
            uct_dcx_key_t *key = get(layout);
            uint32_t lkey      = key->lkey;

            put(key);
            return lkey;
        }

        /* Takes a key with room for @num_klm translations. */
        uct_dcx_key_t *own(unsigned num_klm)
        {
            uct_dcx_key_t *key = NULL;

            EXPECT_EQ(UCS_OK, uct_dcx_keys_own(&keys, num_klm, &key));
            return key;
        }

        /* Waits until an owned key has its layout, or its UMR has failed. */
        ucs_status_t wait(uct_dcx_key_t *key)
        {
            dcx_deadline deadline;
            ucs_status_t status;

            while ((status = uct_dcx_keys_test(&keys, key)) == UCS_INPROGRESS) {
                deadline.check("an owned key");
            }
            return status;
        }

        /* Sets the layout of an owned key whose number peers have. */
        void set(uct_dcx_key_t *&key, dcx_layout &layout)
        {
            ASSERT_EQ(UCS_OK, uct_dcx_keys_set(&keys, &key, 1, layout.get()));
            ASSERT_EQ(UCS_OK, wait(key));
        }

        /* Invalidates the layouts of owned keys, all marked first. */
        void forget(const std::vector<uct_dcx_key_t *> &list)
        {
            ucs_spin_lock(&keys.lock);
            for (auto key : list) {
                uct_dcx_keys_mark(&keys, key);
            }
            ucs_spin_unlock(&keys.lock);
            for (auto key : list) {
                uct_dcx_keys_forget_key(&keys, key);
            }
        }

        void put(uct_dcx_key_t *key) { uct_dcx_keys_put(&keys, key, 0); }

        uct_dcx_keys_stats_t stats()
        {
            uct_dcx_keys_stats_t stats;

            uct_dcx_keys_query(&keys, &stats);
            return stats;
        }

        uct_dcx_device_t dev = {};
        uct_dcx_keys_t keys;
    };

    umr_pair pair{dev};
};

#endif
