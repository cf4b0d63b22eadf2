/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/* A worker of UCP with an endpoint to itself, which runs over dcx. */
#ifndef DCX_UCP_H
#define DCX_UCP_H

#include "dcx_loop.h"

#include <dlfcn.h>
#include <ucp/api/ucp.h>

class dcx_ucp : public testing::TestWithParam<int> {
protected:
    explicit dcx_ucp(uint64_t features)
    {
        ucp_params_t params               = {};
        ucp_worker_params_t worker_params = {};
        ucp_ep_params_t ep_params         = {};
        ucp_address_t *address;
        size_t length;

        HCA_CHECK_CALL(dlopen(dcx_loop::module(), RTLD_NOW) != NULL);
        params.field_mask = UCP_PARAM_FIELD_FEATURES;
        params.features   = features;
        UCT_CALL(ucp_init(&params, NULL, &m_context));
        UCT_CALL(ucp_worker_create(m_context, &worker_params, &m_worker));
        UCT_CALL(ucp_worker_get_address(m_worker, &address, &length));
        ep_params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
        ep_params.address    = address;
        UCT_CALL(ucp_ep_create(m_worker, &ep_params, &m_ep));
        ucp_worker_release_address(m_worker, address);
    }

    ~dcx_ucp()
    {
        close_ep();
        ucp_worker_destroy(m_worker);
        ucp_cleanup(m_context);
    }

    void close_ep()
    {
        ucp_request_param_t param = {};

        if (m_ep != NULL) {
            EXPECT_EQ(UCS_OK, wait(ucp_ep_close_nbx(m_ep, &param)));
            m_ep = NULL;
        }
    }

    /* Waits for a request, and returns its status. */
    ucs_status_t wait(ucs_status_ptr_t request)
    {
        dcx_deadline deadline;
        ucs_status_t status;

        if (!UCS_PTR_IS_PTR(request)) {
            return UCS_PTR_STATUS(request);
        }
        while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) {
            deadline.check("a request");
            ucp_worker_progress(m_worker);
        }
        ucp_request_free(request);
        return status;
    }

    ucp_context_h m_context;
    ucp_worker_h m_worker;
    ucp_ep_h m_ep;
};

#endif
