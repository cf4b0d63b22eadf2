/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A peer in this process: an interface that stores active messages of id 6 and
 * has a counter for atomics.
 */
#ifndef DCX_TEST_DCX_LIVE_PEER_H
#define DCX_TEST_DCX_LIVE_PEER_H

#include "dcx_loop.h"

class live_peer {
public:
    live_peer()
    {
        UCT_CALL(uct_iface_set_am_handler(loop.iface, 6, receive, this, 0));
        counter() = 0;
    }

    volatile uint64_t &counter()
    {
        return *(volatile uint64_t *)loop.mem.data();
    }

    void progress() { uct_worker_progress(loop.worker); }

    dcx_loop loop;
    std::vector<uint64_t> headers;

private:
    static ucs_status_t receive(void *arg, void *data, size_t length, unsigned)
    {
        live_peer *self = (live_peer *)arg;
        uint64_t header;

        EXPECT_LE(sizeof(header), length);
        memcpy(&header, data, sizeof(header));
        self->headers.push_back(header);
        return UCS_OK;
    }
};

#endif
