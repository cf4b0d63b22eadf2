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
};

/* @return the number of the domain that a live process has opened on the inode;
 * 0 if there is none. */
uint32_t hca_xrcd_find(const struct hca_xrcd_spec *spec);

/* Opens a domain, with number @xrcdn if that is not 0. Its number is in
 * obj.user_handle. @return 0, -ENOMEM. */
int hca_xrcd_create(const struct hca_xrcd_spec *spec, uint32_t xrcdn,
                    struct hca_xrcd **xrcd_p);

#endif
