/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A profile of the first device (dcx_profile.h) with the lines of a test; dcx
 * uses it for devices that are opened while the object exists.
 */
#ifndef DCX_TEST_FORGED_PROFILE_H
#define DCX_TEST_FORGED_PROFILE_H

#include "hca_fixture.h"

extern "C" {
#include "uct/dcx/dev/dcx_profile.h"
}

class forged_profile {
public:
    explicit forged_profile(const std::string &lines)
    {
        hca_device device;
        struct ibv_device_attr attr;
        uct_dcx_profile_id_t id;

        HCA_CHECK_CALL(ibv_query_device(device.ctx, &attr) == 0);
        uct_dcx_profile_identify(&id, device.ctx->device, &attr);
        HCA_CHECK_CALL(mkdtemp(m_dir) != NULL);
        setenv("UCX_DCX_PROFILE", path().c_str(), 1);
        HCA_CHECK_CALL(uct_dcx_profile_write(path().c_str(), &id,
                                             lines.c_str()) == UCS_OK);
    }

    ~forged_profile()
    {
        unsetenv("UCX_DCX_PROFILE");
        std::filesystem::remove_all(m_dir);
    }

    forged_profile(const forged_profile &) = delete;

private:
    std::string path() const { return std::string(m_dir) + "/profile"; }

    char m_dir[32] = "/tmp/forged_profile.XXXXXX";
};

#endif
