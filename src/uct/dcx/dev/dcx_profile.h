/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A profile: results of dcx_selftest for a kind of device. Some features have
 * no public capability bit; they are off unless a profile says that they
 * passed. Others are on unless it says that they failed. It is a text file that
 * can be mailed:
 *
 *     dcx profile 1
 *     part 4123              vendor_part_id
 *     psid MT_0000000223     sysfs: board_id
 *     firmware 20.35.1012
 *     driver 6.1.0-18-amd64  release of the kernel, or "any"
 *     nests pass             a line for each probe, or a measured value
 *     umr_us_4 0.49          us of a UMR of 4 entries
 *     copy_mbs 8200          MB/s of a copy of pieces that are in no cache
 *     ...
 *     crc 89abcdef           of all lines above
 *
 * Read when a device is opened (dcx_device.c), written by dcx_selftest.
 */
#ifndef UCT_DCX_PROFILE_H
#define UCT_DCX_PROFILE_H

#include <infiniband/verbs.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <ucs/sys/string.h>
#include <ucs/type/status.h>


typedef enum uct_dcx_profile_feature {
    /* off unless a profile says that they passed */
    UCT_DCX_PROFILE_NESTS,   /* repeated blocks over repeated blocks */
    UCT_DCX_PROFILE_INLINE,  /* 52 translations in a WQE */
    UCT_DCX_PROFILE_TM_KEYS, /* strided mkeys in the list of tags */
    UCT_DCX_PROFILE_NUM,

    /* on unless a profile says that a probe of them failed */
    UCT_DCX_PROFILE_KSM = UCT_DCX_PROFILE_NUM, /* mkeys for invalidation */
    UCT_DCX_PROFILE_UMR,                       /* layouts */
    UCT_DCX_PROFILE_TM                         /* tag matching */
} uct_dcx_profile_feature_t;


/* Options that are "auto" by default: a constant, or the bytes that the
 * processor copies during a UMR if a profile measured more */
typedef enum uct_dcx_threshold {
    UCT_DCX_THRESHOLD_COPY,       /* STRIDED_COPY: a UMR of 4 entries */
    UCT_DCX_THRESHOLD_COPY_PIECE, /* STRIDED_COPY_PIECE: one entry more */
    UCT_DCX_THRESHOLD_LENGTH,     /* TYPES_MIN_LENGTH: a UMR of 52 entries */
    UCT_DCX_THRESHOLD_BLOCK,      /* TYPES_MIN_BLOCK: one entry more */
    UCT_DCX_THRESHOLD_NUM
} uct_dcx_threshold_t;


/* A kind of device */
typedef struct uct_dcx_profile_id {
    uint32_t part;
    char psid[64];
    char firmware[64];
    char driver[128];
} uct_dcx_profile_id_t;


typedef struct uct_dcx_profile {
    uint32_t passed; /* bits 1 << uct_dcx_profile_feature_t */
    uint32_t failed;
    unsigned levels; /* nesting of layouts, 0: not measured */
    size_t thresholds[UCT_DCX_THRESHOLD_NUM]; /* bytes */
    char path[PATH_MAX];                      /* "": no profile is valid */
} uct_dcx_profile_t;


/* Name in the file of the nesting of layouts that passed */
#define UCT_DCX_PROFILE_LEVELS "levels"

/* Names in the file of the time of a UMR, followed by the number of its
 * entries, and of the speed of a copy */
#define UCT_DCX_PROFILE_UMR_US "umr_us_"
#define UCT_DCX_PROFILE_COPY   "copy_mbs"


/* Names in the file of the features that are off by default */
extern const char *const uct_dcx_profile_names[UCT_DCX_PROFILE_NUM];

/* Thresholds without measurements; a profile only raises them, up to 16
 * times. */
extern const size_t uct_dcx_profile_defaults[UCT_DCX_THRESHOLD_NUM];


void uct_dcx_profile_identify(uct_dcx_profile_id_t *id,
                              const struct ibv_device *ibdev,
                              const struct ibv_device_attr *attr);

/* Loads the profile of a device. @option is "none", a path, or "auto": the
 * first that exists of the user's, the site's and the installed one. If that is
 * invalid, warns with the reason, and uses none. With "auto", warns, too, of a
 * profile for other firmware if there is none for this. */
void uct_dcx_profile_load(uct_dcx_profile_t *profile, const char *option,
                          const uct_dcx_profile_id_t *id);

/* Returns @option, or the profile's value if @option is "auto". */
static inline size_t uct_dcx_profile_threshold(const uct_dcx_profile_t *profile,
                                               uct_dcx_threshold_t threshold,
                                               size_t option)
{
    return (option == UCS_MEMUNITS_AUTO) ? profile->thresholds[threshold] :
                                           option;
}

/* Writes the path of the user's profile to @path, of PATH_MAX bytes. Returns
 * UCS_ERR_NO_ELEM if neither $XDG_CONFIG_HOME nor $HOME is set, or the path is
 * too long. */
ucs_status_t uct_dcx_profile_user_path(const uct_dcx_profile_id_t *id,
                                       char *path);

/* Writes a profile, or replaces the one at @path, whose folder exists. @results
 * are lines "key value\n". Logs errors. */
ucs_status_t uct_dcx_profile_write(const char *path,
                                   const uct_dcx_profile_id_t *id,
                                   const char *results);

#endif
