/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Protection domains, XRC domains and device memory. hca_obj_free() frees
 * them.
 */
#ifndef HCA_DOMAIN_H
#define HCA_DOMAIN_H

#include "hca_objs.h"

/* @param handle  the domain's in uverbs/
 * @return 0, -ENOMEM. */
int hca_pd_create(unsigned dev, uint32_t handle, struct hca_pd **pd_p);

/* @return 0, -ENOMEM. */
int hca_dm_create(unsigned dev, struct hca_dm **dm_p);

struct hca_xrcd_spec {
    unsigned dev;
    uint64_t st_dev, st_ino; /* 0, 0: private to its opener */
    int oflags;              /* O_CREAT and O_EXCL, as for open(2) */
};

/* Opens a domain: that which a live process has opened on the inode, or a new
 * one. Its number is in obj.user_handle.
 * @return 0, -EAGAIN (there is none, without O_CREAT), -EINVAL (there is one,
 *         with O_EXCL), -ENOMEM. */
int hca_xrcd_open(const struct hca_xrcd_spec *spec, struct hca_xrcd **xrcd_p);

#endif
