/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Finds, reads and checks the profile of a device, and derives thresholds from
 * it; see dcx_profile.h.
 */
#include "dcx_profile.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <ucs/algorithm/crc.h>
#include <ucs/debug/log.h>
#include <ucs/sys/math.h>
#include <ucs/sys/string.h>
#include <ucs/sys/sys.h>
#include <unistd.h>


#define UCT_DCX_PROFILE_HEAD    "dcx profile "
#define UCT_DCX_PROFILE_VERSION "1\n"
#define UCT_DCX_PROFILE_ANY     "any"
#define UCT_DCX_PROFILE_SUFFIX  ".profile"


enum {
    UCT_DCX_PROFILE_SIZE  = 16384, /* bytes of a file */
    UCT_DCX_PROFILE_WHY   = 320,
    UCT_DCX_PROFILE_RAISE = 16 /* maximum of a threshold, in multiples of
                                * its default */
};


/* Folders in which "auto" looks, in this order */
typedef enum uct_dcx_profile_place {
    UCT_DCX_PROFILE_USER,
    UCT_DCX_PROFILE_SITE,
    UCT_DCX_PROFILE_INSTALLED,
    UCT_DCX_PROFILE_PLACES
} uct_dcx_profile_place_t;


const char *const uct_dcx_profile_names[UCT_DCX_PROFILE_NUM] = {
    [UCT_DCX_PROFILE_NESTS]   = "nests",
    [UCT_DCX_PROFILE_INLINE]  = "inline52",
    [UCT_DCX_PROFILE_TM_KEYS] = "tm_keys",
};


/* docs/strided.md and docs/derived-types.md explain these values. */
const size_t uct_dcx_profile_defaults[UCT_DCX_THRESHOLD_NUM] = {
    [UCT_DCX_THRESHOLD_COPY]       = 2 * UCS_KBYTE,
    [UCT_DCX_THRESHOLD_COPY_PIECE] = 64,
    [UCT_DCX_THRESHOLD_LENGTH]     = 256 * UCS_KBYTE,
    [UCT_DCX_THRESHOLD_BLOCK]      = 256,
};


/* Probes that switch a feature off if they fail; "depth" limits the layers. */
static const struct {
    const char *name;
    uct_dcx_profile_feature_t feature;
} uct_dcx_profile_probes[] = {
    {"ksm_boundary", UCT_DCX_PROFILE_KSM},
    {"ksm_large", UCT_DCX_PROFILE_KSM},
    {"ksm_read_only", UCT_DCX_PROFILE_KSM},
    {"invalidation", UCT_DCX_PROFILE_KSM},
    {"list4", UCT_DCX_PROFILE_UMR},
    {"list20", UCT_DCX_PROFILE_UMR},
    {"list53", UCT_DCX_PROFILE_UMR},
    {"list1024", UCT_DCX_PROFILE_UMR},
    {"strided", UCT_DCX_PROFILE_UMR},
    {"list_over", UCT_DCX_PROFILE_UMR},
    {"changes", UCT_DCX_PROFILE_UMR},
    {"local_inv", UCT_DCX_PROFILE_UMR},
    {"tm_eager", UCT_DCX_PROFILE_TM},
    {"tm_rndv", UCT_DCX_PROFILE_TM},
    {"wire_invalidation", UCT_DCX_PROFILE_KSM},
    {"wire_lists", UCT_DCX_PROFILE_UMR},
    {"wire_strided", UCT_DCX_PROFILE_UMR},
    {"wire_list_over", UCT_DCX_PROFILE_UMR},
    {"wire_tm_eager", UCT_DCX_PROFILE_TM},
    {"wire_tm_rndv", UCT_DCX_PROFILE_TM},
};


/* --- the device ----------------------------------------------------------- */
/* Ends a word at its first blank, and makes it valid in a file name. */
static void uct_dcx_profile_word(char *word)
{
    word[strcspn(word, " \t\r\n")] = '\0';
    for (; *word != '\0'; ++word) {
        if (*word == '/') {
            *word = '_';
        }
    }
}


void uct_dcx_profile_identify(uct_dcx_profile_id_t *id,
                              const struct ibv_device *ibdev,
                              const struct ibv_device_attr *attr)
{
    struct utsname kernel = {};

    memset(id, 0, sizeof(*id));
    id->part = attr->vendor_part_id;
    if (ucs_read_file_str(id->psid, sizeof(id->psid), 1, "%s/board_id",
                          ibdev->ibdev_path) <= 0) {
        strcpy(id->psid, "unknown");
    }
    uname(&kernel);
    ucs_strncpy_zero(id->firmware, attr->fw_ver, sizeof(id->firmware));
    ucs_strncpy_zero(id->driver, kernel.release, sizeof(id->driver));
    uct_dcx_profile_word(id->psid);
    uct_dcx_profile_word(id->firmware);
    uct_dcx_profile_word(id->driver);
}


/* --- places --------------------------------------------------------------- */
static int uct_dcx_profile_join(char *folder, const char *base, const char *sub)
{
    return (base != NULL) && (*base != '\0') &&
           (snprintf(folder, PATH_MAX, "%s%s", base, sub) < PATH_MAX);
}


static int uct_dcx_profile_folder(char *folder, uct_dcx_profile_place_t place)
{
    const char *installed = getenv("DCX_PROFILES"); /* set by dcx-run */

    switch (place) {
    case UCT_DCX_PROFILE_USER:
        return uct_dcx_profile_join(folder, getenv("XDG_CONFIG_HOME"),
                                    "/dcx") ||
               uct_dcx_profile_join(folder, getenv("HOME"), "/.config/dcx");
    case UCT_DCX_PROFILE_SITE:
        return uct_dcx_profile_join(folder, DCX_SYSCONFDIR, "/dcx");
    default:
        return uct_dcx_profile_join(
            folder,
            (installed != NULL) ? installed : DCX_PKGDATADIR "/profiles", "");
    }
}


/* Builds the path of a profile. It contains the part, as two functions of one
 * adapter may differ in nothing else. */
static int uct_dcx_profile_path(char *path, const uct_dcx_profile_id_t *id,
                                uct_dcx_profile_place_t place)
{
    char folder[PATH_MAX];

    return uct_dcx_profile_folder(folder, place) &&
           (snprintf(path, PATH_MAX, "%s/%s-%u-%s" UCT_DCX_PROFILE_SUFFIX,
                     folder, id->psid, id->part, id->firmware) < PATH_MAX);
}


ucs_status_t uct_dcx_profile_user_path(const uct_dcx_profile_id_t *id,
                                       char *path)
{
    return uct_dcx_profile_path(path, id, UCT_DCX_PROFILE_USER) ?
               UCS_OK :
               UCS_ERR_NO_ELEM;
}


/* --- reading -------------------------------------------------------------- */
static void uct_dcx_profile_warn(const char *path, const char *why)
{
    ucs_warn("profile %s is not used: %s; run dcx_selftest to write a new "
             "one, or set UCX_DCX_PROFILE=none",
             path, why);
}


/* Replaces bytes of a file that would act on a terminal, for the log. */
static void uct_dcx_profile_make_printable(char *text)
{
    for (; *text != '\0'; ++text) {
        if (!isascii(*text) || !isprint(*text)) {
            *text = '?';
        }
    }
}


/* Copies the text after "key " in a line to @value, "" if no line has it. */
static void uct_dcx_profile_value(const char *text, const char *key,
                                  char *value, size_t max)
{
    const size_t length = strlen(key);
    const char *line    = text;

    *value = '\0';
    while ((line = strchr(line, '\n')) != NULL) {
        ++line;
        if (!strncmp(line, key, length) && (line[length] == ' ')) {
            line += length + 1;
            snprintf(value, max, "%.*s", (int)strcspn(line, "\n"), line);
            return;
        }
    }
}


static int uct_dcx_profile_is_whole(const char *text, size_t size)
{
    const char *last = NULL, *line;
    char crc[32];

    for (line = text; (line != NULL) && (line < text + size);) {
        last = line;
        line = strchr(line, '\n');
        line = (line == NULL) ? NULL : line + 1;
    }
    if (last == NULL) {
        return 0;
    }

    snprintf(crc, sizeof(crc), "crc %08x\n", ucs_crc32(0, text, last - text));
    return (strlen(text) == size) && !strcmp(last, crc);
}


/* Returns 1, or 0 with the reason in @why. */
static int uct_dcx_profile_check_id(const char *text,
                                    const uct_dcx_profile_id_t *id, char *why)
{
    char part[16], value[128];
    const struct {
        const char *key, *ours;
    } rows[] = {
        {"part", part},
        {"psid", id->psid},
        {"firmware", id->firmware},
        {"driver", id->driver},
    };
    unsigned i;

    snprintf(part, sizeof(part), "%u", id->part);
    for (i = 0; i < ucs_static_array_size(rows); ++i) {
        uct_dcx_profile_value(text, rows[i].key, value, sizeof(value));
        if (strcmp(value, rows[i].ours) &&
            ((rows[i].ours != id->driver) ||
             strcmp(value, UCT_DCX_PROFILE_ANY))) {
            uct_dcx_profile_make_printable(value);
            snprintf(why, UCT_DCX_PROFILE_WHY,
                     "it is for %s %s, and this device has %s", rows[i].key,
                     value, rows[i].ours);
            return 0;
        }
    }
    return 1;
}


/* Returns 1, or 0 with the reason in @why. */
static int uct_dcx_profile_check_file(int fd, char *why)
{
    struct stat st;

    if ((fstat(fd, &st) != 0) || !S_ISREG(st.st_mode)) {
        snprintf(why, UCT_DCX_PROFILE_WHY, "it is not a file");
    } else if ((st.st_uid != 0) && (st.st_uid != geteuid())) {
        snprintf(why, UCT_DCX_PROFILE_WHY,
                 "it belongs to user %u, not to root or you", st.st_uid);
    } else if (st.st_mode & (S_IWGRP | S_IWOTH)) {
        snprintf(why, UCT_DCX_PROFILE_WHY,
                 "other users can write to it (chmod go-w fixes that)");
    } else {
        return 1;
    }
    return 0;
}


static int uct_dcx_profile_is(const char *text, const char *key,
                              const char *expected)
{
    char value[16];

    uct_dcx_profile_value(text, key, value, sizeof(value));
    return !strcmp(value, expected);
}


/* Returns non-zero if a probe failed. "No tag matching" at one port does not
 * count: another port of the device may have it. */
static int uct_dcx_profile_has_failed(const char *text, unsigned probe)
{
    const char *name = uct_dcx_profile_probes[probe].name;

    return uct_dcx_profile_is(text, name, "fail") ||
           ((uct_dcx_profile_probes[probe].feature != UCT_DCX_PROFILE_TM) &&
            uct_dcx_profile_is(text, name, "refused"));
}


/* Returns the value of @key, 0 if it is no plain decimal number. Not strtod(),
 * which depends on the program's locale, and accepts "nan" and "inf". */
static double uct_dcx_profile_number(const char *text, const char *key)
{
    double number = 0;
    double scale  = 0; /* 10 to the digits behind the point, 0: no point */
    char value[16];
    const char *pos;

    uct_dcx_profile_value(text, key, value, sizeof(value));
    for (pos = value; *pos != '\0'; ++pos) {
        if ((*pos >= '0') && (*pos <= '9')) {
            number = number * 10 + (*pos - '0');
            scale *= 10;
        } else if ((*pos == '.') && (scale == 0)) {
            scale = 1;
        } else {
            return 0;
        }
    }
    return number / ucs_max(scale, 1);
}


/* Raises a threshold above its default, up to a limit: a wrong figure must not
 * have large data copied. */
static void uct_dcx_profile_raise(uct_dcx_profile_t *profile,
                                  uct_dcx_threshold_t threshold, double bytes)
{
    const double least = uct_dcx_profile_defaults[threshold];

    profile->thresholds[threshold] =
        ucs_max(least, ucs_min(bytes, UCT_DCX_PROFILE_RAISE * least));
}


/* Sets each threshold to the bytes that the processor copies during a UMR. Up
 * to this size a copy takes no longer than the UMR that would avoid it. */
static void uct_dcx_profile_measured(uct_dcx_profile_t *profile,
                                     const char *text)
{
    const double speed = uct_dcx_profile_number(text, UCT_DCX_PROFILE_COPY);
    const double umr4  = uct_dcx_profile_number(text,
                                                UCT_DCX_PROFILE_UMR_US "4");
    const double umr52 = uct_dcx_profile_number(text,
                                                UCT_DCX_PROFILE_UMR_US "52");
    const double umr1k = uct_dcx_profile_number(text,
                                                UCT_DCX_PROFILE_UMR_US "1024");
    const double entry = (umr4 > 0) ? (umr1k - umr4) / (1024 - 4) : 0;

    /* 1 MB/s is 1 byte per us */
    uct_dcx_profile_raise(profile, UCT_DCX_THRESHOLD_COPY, speed * umr4);
    uct_dcx_profile_raise(profile, UCT_DCX_THRESHOLD_COPY_PIECE, speed * entry);
    uct_dcx_profile_raise(profile, UCT_DCX_THRESHOLD_LENGTH, speed * umr52);
    uct_dcx_profile_raise(profile, UCT_DCX_THRESHOLD_BLOCK, speed * entry);
}


static void uct_dcx_profile_results(uct_dcx_profile_t *profile,
                                    const char *text)
{
    char levels[16];
    unsigned i;

    uct_dcx_profile_value(text, UCT_DCX_PROFILE_LEVELS, levels, sizeof(levels));
    if (levels[0] != '\0') {
        profile->levels = ucs_max(1, strtoul(levels, NULL, 10));
    }
    for (i = 0; i < UCT_DCX_PROFILE_NUM; ++i) {
        if (uct_dcx_profile_is(text, uct_dcx_profile_names[i], "pass")) {
            profile->passed |= UCS_BIT(i);
        }
    }
    for (i = 0; i < ucs_static_array_size(uct_dcx_profile_probes); ++i) {
        if (uct_dcx_profile_has_failed(text, i)) {
            profile->failed |= UCS_BIT(uct_dcx_profile_probes[i].feature);
        }
    }
    uct_dcx_profile_measured(profile, text);
}


/* Returns 1, or 0 with the reason in @why. */
static int uct_dcx_profile_check(const char *text, size_t size,
                                 const uct_dcx_profile_id_t *id, char *why)
{
    const size_t head = strlen(UCT_DCX_PROFILE_HEAD);

    if (strncmp(text, UCT_DCX_PROFILE_HEAD, head)) {
        snprintf(why, UCT_DCX_PROFILE_WHY, "it is not a profile of dcx");
        return 0;
    }
    if (strncmp(text + head, UCT_DCX_PROFILE_VERSION,
                strlen(UCT_DCX_PROFILE_VERSION))) {
        snprintf(why, UCT_DCX_PROFILE_WHY,
                 "it has the format of another version of dcx");
        return 0;
    }
    if (!uct_dcx_profile_is_whole(text, size)) {
        snprintf(why, UCT_DCX_PROFILE_WHY, "it is damaged");
        return 0;
    }
    return uct_dcx_profile_check_id(text, id, why);
}


/* Returns 0 if there is no such file. Otherwise it decides, even if it is
 * invalid. */
static int uct_dcx_profile_read(uct_dcx_profile_t *profile, const char *path,
                                const uct_dcx_profile_id_t *id, int is_required)
{
    char text[UCT_DCX_PROFILE_SIZE], why[UCT_DCX_PROFILE_WHY];
    ssize_t size = -1;
    int good     = 0;
    int fd       = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd >= 0) {
        good = uct_dcx_profile_check_file(fd, why);
        size = good ? read(fd, text, sizeof(text) - 1) : 0;
        close(fd);
    } else if (!is_required && ((errno == ENOENT) || (errno == ENOTDIR))) {
        return 0;
    }

    if (size < 0) {
        snprintf(why, sizeof(why), "%s", strerror(errno));
        good = 0;
    } else if (good) {
        text[size] = '\0';
        good       = uct_dcx_profile_check(text, size, id, why);
    }
    if (good) {
        uct_dcx_profile_results(profile, text);
        ucs_strncpy_zero(profile->path, path, sizeof(profile->path));
    } else {
        uct_dcx_profile_warn(path, why);
    }
    return 1;
}


/* Returns the firmware in the file name of a profile of the same kind of
 * device, or NULL. Cuts the suffix off. */
static char *uct_dcx_profile_firmware(char *name,
                                      const uct_dcx_profile_id_t *id)
{
    const size_t length = strlen(name);
    const size_t suffix = strlen(UCT_DCX_PROFILE_SUFFIX);
    char prefix[sizeof(id->psid) + 16];
    int head;

    head = snprintf(prefix, sizeof(prefix), "%s-%u-", id->psid, id->part);
    if ((length <= head + suffix) || strncmp(name, prefix, head) ||
        strcmp(name + length - suffix, UCT_DCX_PROFILE_SUFFIX)) {
        return NULL;
    }

    name[length - suffix] = '\0';
    uct_dcx_profile_make_printable(name);
    return name + head;
}


/* Warns of a profile for other firmware in a folder. Returns 0 if there is
 * none. */
static int uct_dcx_profile_warn_firmware(const uct_dcx_profile_id_t *id,
                                         uct_dcx_profile_place_t place)
{
    char folder[PATH_MAX], path[PATH_MAX + NAME_MAX + 2];
    char why[UCT_DCX_PROFILE_WHY];
    const char *firmware = NULL;
    struct dirent *entry;
    DIR *dir;

    dir = uct_dcx_profile_folder(folder, place) ? opendir(folder) : NULL;
    if (dir == NULL) {
        return 0;
    }

    while ((firmware == NULL) && ((entry = readdir(dir)) != NULL)) {
        firmware = uct_dcx_profile_firmware(entry->d_name, id);
    }
    if (firmware != NULL) {
        snprintf(path, sizeof(path), "%s/%s" UCT_DCX_PROFILE_SUFFIX, folder,
                 entry->d_name);
        snprintf(why, sizeof(why),
                 "it is for firmware %.100s, and this device has %s", firmware,
                 id->firmware);
        uct_dcx_profile_warn(path, why);
    }
    closedir(dir);
    return firmware != NULL;
}


void uct_dcx_profile_load(uct_dcx_profile_t *profile, const char *option,
                          const uct_dcx_profile_id_t *id)
{
    uct_dcx_profile_place_t place;
    char path[PATH_MAX];

    memset(profile, 0, sizeof(*profile));
    memcpy(profile->thresholds, uct_dcx_profile_defaults,
           sizeof(profile->thresholds));
    if (!strcasecmp(option, "none")) {
        return;
    }

    if (strcasecmp(option, "auto")) {
        uct_dcx_profile_read(profile, option, id, 1);
        return;
    }

    for (place = 0; place < UCT_DCX_PROFILE_PLACES; ++place) {
        if (uct_dcx_profile_path(path, id, place) &&
            uct_dcx_profile_read(profile, path, id, 0)) {
            return;
        }
    }
    for (place = 0; place < UCT_DCX_PROFILE_PLACES; ++place) {
        if (uct_dcx_profile_warn_firmware(id, place)) {
            return;
        }
    }
}


/* --- writing -------------------------------------------------------------- */
static ucs_status_t uct_dcx_profile_store(const char *path, const char *text,
                                          size_t size)
{
    char temp[PATH_MAX];
    struct stat st;
    int fd = -1;

    if ((lstat(path, &st) == 0) && !S_ISREG(st.st_mode)) {
        errno = EEXIST; /* do not replace a device by a file */
    } else if (snprintf(temp, sizeof(temp), "%s.XXXXXX", path) < PATH_MAX) {
        fd = mkstemp(temp);
    } else {
        errno = ENAMETOOLONG;
    }
    if (fd < 0) {
        ucs_error("failed to write profile %s: %m", path);
        return UCS_ERR_IO_ERROR;
    }

    /* A process that opens a device meanwhile reads the old or the new file. */
    if ((write(fd, text, size) != (ssize_t)size) || (fchmod(fd, 0644) != 0) ||
        (rename(temp, path) != 0)) {
        ucs_error("failed to write profile %s: %m", path);
        close(fd);
        unlink(temp);
        return UCS_ERR_IO_ERROR;
    }
    close(fd);
    return UCS_OK;
}


ucs_status_t uct_dcx_profile_write(const char *path,
                                   const uct_dcx_profile_id_t *id,
                                   const char *results)
{
    char text[UCT_DCX_PROFILE_SIZE];
    size_t size;

    size = snprintf(text, sizeof(text),
                    UCT_DCX_PROFILE_HEAD UCT_DCX_PROFILE_VERSION
                    "part %u\npsid %s\nfirmware %s\ndriver %s\n%s",
                    id->part, id->psid, id->firmware, id->driver, results);
    if (size + 16 > sizeof(text)) {
        ucs_error("failed to write profile %s: it exceeds %zu bytes", path,
                  sizeof(text));
        return UCS_ERR_EXCEEDS_LIMIT;
    }

    size += snprintf(text + size, sizeof(text) - size, "crc %08x\n",
                     ucs_crc32(0, text, size));
    return uct_dcx_profile_store(path, text, size);
}
