/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Protection domains, XRC domains and device memory: objects that other
 * processes may import. hca_obj_free() frees them.
 */
#ifndef HCA_DOMAIN_H
#define HCA_DOMAIN_H

#include "hca_objs.h"

/* @return 0, -ENOMEM. */
int hca_pd_create(unsigned dev, const struct hca_name *name,
                  struct hca_pd **pd_p);

/* Records that another process has imported the domain. */
void hca_pd_share(struct hca_pd *pd);

/* Adds @n, which may be negative, to the count of the owner's address
 * handles. */
void hca_pd_count_ahs(struct hca_pd *pd, int n);

struct hca_dm_spec {
    unsigned dev;
    struct hca_name name;
    void *mem; /* of the arena */
    uint64_t length;
};

/* @return 0, -ENOMEM. */
int hca_dm_create(const struct hca_dm_spec *spec, struct hca_dm **dm_p);

/* Sets whether hca_dm_keep() may keep the memory: another process may have it
 * mapped, and the program has not freed it. */
void hca_dm_set_shared(struct hca_dm *dm, bool is_shared);

/* Adds @n, which may be negative, to the count of regions on the memory. */
void hca_dm_count_regions(struct hca_dm *dm, int n);

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
