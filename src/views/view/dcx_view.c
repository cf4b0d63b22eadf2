/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The table of views; see dcx_view.h. Those that nobody uses are in the order
 * in which they were closed, and are found by what they were of. A view that is
 * closed is put there by the next call that has the lock.
 */
#include "dcx_view.h"
#include "dcx_view_key.h"
#include "uct/dcx/dcx_ext.h"

#include <pthread.h>
#include <ucs/datastruct/list.h>
#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/memory/memtype_cache.h>
#include <ucs/sys/math.h>


enum {
    /* domains that a view may have keys in: devices of the node, twice */
    UCT_DCX_VIEW_MAX_KEYS  = 16,
    UCT_DCX_VIEW_BUCKETS   = 256,
    /* what cannot be is tried again after up to 2^10 times */
    UCT_DCX_VIEW_MAX_TRIES = 10
};


/* A place of the table */
typedef struct uct_dcx_view_place {
    uct_dcx_view_t            super;
    ucs_list_link_t           list;    /* nobody uses it */
    struct uct_dcx_view_place *chain;  /* ... and it is in a bucket, or it is
                                        * one of 'closed' */
    int                       is_known; /* is in a bucket when nobody uses it */
    int                       is_open;
    unsigned                  num_open;
    uct_dcx_view_data_t       data;
    uct_dcx_view_status_t     status;    /* of the last time it was tried */
    unsigned                  num_tries; /* that failed, one after the other */
    unsigned                  num_skips; /* ... before it is tried again */
    uct_dcx_view_key_t        *open[UCT_DCX_VIEW_MAX_KEYS]; /* in use */
    uct_dcx_view_key_t        keys[UCT_DCX_VIEW_MAX_KEYS];
} uct_dcx_view_place_t;


static struct {
    ucs_memory_type_t    type;
    pthread_mutex_t      lock;
    unsigned             max;
    unsigned             num;
    ucs_list_link_t      free;   /* oldest first */
    uct_dcx_view_place_t *closed; /* last one first; without the lock */
    uct_dcx_view_place_t *buckets[UCT_DCX_VIEW_BUCKETS];
    uct_dcx_view_place_t *places[UCT_DCX_VIEW_OPS_MAX];
} uct_dcx_views = {
    .type = UCS_MEMORY_TYPE_UNKNOWN,
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .free = UCS_LIST_INITIALIZER(&uct_dcx_views.free, &uct_dcx_views.free)
};


/* UCX's cache of what memory is a GPU's is made when it is first asked. */
void uct_dcx_view_enable(unsigned max, ucs_memory_type_t type)
{
    ucs_memory_info_t info = {0};

    (void)ucs_memtype_cache_lookup(&info, sizeof(info), &info);
    uct_dcx_views.max = max;
    uct_dcx_ext.enable(type, UCT_DCX_VIEW_BASE, UCT_DCX_VIEW_LENGTH,
                       UCT_DCX_VIEW_OPS_MAX);
    __atomic_store_n(&uct_dcx_views.type, type, __ATOMIC_RELEASE);
}


ucs_memory_type_t uct_dcx_view_memory_type(void)
{
    return __atomic_load_n(&uct_dcx_views.type, __ATOMIC_ACQUIRE);
}


/* --- those that nobody uses; with the lock -------------------------------- */

static uct_dcx_view_place_t **
uct_dcx_view_bucket(const uct_dcx_view_data_t *data)
{
    uint64_t hash = (uintptr_t)data->super.buffer ^ (data->id << 32) ^
                    (data->super.count << 8) ^ data->is_dest;

    hash *= 0x9e3779b97f4a7c15ul; /* as layouts are mixed: dcx_sgl.c */
    return &uct_dcx_views.buckets[(hash >> 32) % UCT_DCX_VIEW_BUCKETS];
}


static uct_dcx_view_place_t *
uct_dcx_view_known(const uct_dcx_view_data_t *data)
{
    uct_dcx_view_place_t *place = *uct_dcx_view_bucket(data);

    while ((place != NULL) &&
           ((place->data.id != data->id) ||
            (place->data.super.buffer != data->super.buffer) ||
            (place->data.super.count != data->super.count) ||
            (place->data.is_dest != data->is_dest))) {
        place = place->chain;
    }
    return place;
}


/* What failed the last time is known, but the first to get other data. */
static void uct_dcx_view_put(uct_dcx_view_place_t *place)
{
    uct_dcx_view_place_t **bucket = uct_dcx_view_bucket(&place->data);

    if (place->is_known) {
        place->chain = *bucket;
        *bucket      = place;
    }
    if (place->is_known && (place->status == UCT_DCX_VIEW_OK)) {
        ucs_list_add_tail(&uct_dcx_views.free, &place->list);
    } else {
        ucs_list_add_head(&uct_dcx_views.free, &place->list);
    }
}


static void uct_dcx_view_take(uct_dcx_view_place_t *place)
{
    uct_dcx_view_place_t **link = uct_dcx_view_bucket(&place->data);

    ucs_list_del(&place->list);
    if (place->is_known) {
        while (*link != place) {
            link = &(*link)->chain;
        }
        *link = place->chain;
    }
}


/* Puts back those that were closed, in the order in which they were. */
static void uct_dcx_view_put_closed(void)
{
    uct_dcx_view_place_t *first = NULL;
    uct_dcx_view_place_t *place, *next;

    place = __atomic_exchange_n(&uct_dcx_views.closed, NULL, __ATOMIC_ACQUIRE);
    for (; place != NULL; place = next) {
        next         = place->chain;
        place->chain = first;
        first        = place;
    }
    for (; first != NULL; first = next) {
        next = first->chain;
        uct_dcx_view_put(first);
    }
}


/* One more, or NULL */
static uct_dcx_view_place_t *uct_dcx_view_new(void)
{
    unsigned index = uct_dcx_views.num;
    uct_dcx_view_place_t *place;
    unsigned i;

    if (index == uct_dcx_views.max) {
        return NULL;
    }

    place = ucs_calloc(1, sizeof(*place), "uct_dcx_view");
    if (place == NULL) {
        return NULL;
    }

    place->super.address     = uct_dcx_view_address(index);
    place->super.index       = index;
    place->super.memory_type = uct_dcx_views.type;
    for (i = 0; i < UCT_DCX_VIEW_MAX_KEYS; ++i) {
        place->keys[i].index = index;
    }
    __atomic_store_n(&uct_dcx_views.places[index], place, __ATOMIC_RELEASE);
    uct_dcx_views.num++;
    return place;
}


/* It gets other data: no key has that. */
static void uct_dcx_view_change(uct_dcx_view_place_t *place,
                                const uct_dcx_view_data_t *data)
{
    unsigned i;

    place->data      = *data;
    place->status    = UCT_DCX_VIEW_OK;
    place->num_tries = 0;
    place->num_skips = 0;
    for (i = 0; i < UCT_DCX_VIEW_MAX_KEYS; ++i) {
        place->keys[i].is_current = 0;
    }
}


/* All that there are have data that may come again. */
static int uct_dcx_view_is_new_needed(void)
{
    return ucs_list_is_empty(&uct_dcx_views.free) ||
           ucs_list_head(&uct_dcx_views.free, uct_dcx_view_place_t,
                         list)->is_known;
}


/* The one that had this data; else one that was never used, or was not for the
 * longest time */
static uct_dcx_view_place_t *
uct_dcx_view_find_place(const uct_dcx_view_data_t *data)
{
    uct_dcx_view_place_t *place = uct_dcx_view_known(data);

    if (place != NULL) {
        uct_dcx_view_take(place);
        return place;
    }

    place = uct_dcx_view_is_new_needed() ? uct_dcx_view_new() : NULL;
    if ((place == NULL) && !ucs_list_is_empty(&uct_dcx_views.free)) {
        place = ucs_list_head(&uct_dcx_views.free, uct_dcx_view_place_t, list);
        uct_dcx_view_take(place);
    }
    if (place != NULL) {
        uct_dcx_view_change(place, data);
    }
    return place;
}


/* The key in this domain, or one that is in none; NULL: there are too many */
static uct_dcx_view_key_t *
uct_dcx_view_key_of(uct_dcx_view_place_t *place, uct_md_h md)
{
    uct_dcx_view_key_t *unused = NULL;
    uct_dcx_view_key_t *key;

    for (key = place->keys; key < place->keys + UCT_DCX_VIEW_MAX_KEYS; ++key) {
        if (key->md == md) {
            return key;
        }
        if ((key->md == NULL) && (unused == NULL)) {
            unused = key;
        }
    }

    if (unused != NULL) {
        unused->md = md;
    }
    return unused;
}


static int uct_dcx_view_get_keys(uct_dcx_view_place_t *place, void *const *mds,
                                 unsigned num_mds)
{
    unsigned i;

    for (i = 0; i < num_mds; ++i) {
        place->open[i] = uct_dcx_view_key_of(place, mds[i]);
        if (place->open[i] == NULL) {
            return 0;
        }
    }
    return 1;
}


/* --- opening -------------------------------------------------------------- */

static uct_dcx_view_status_t
uct_dcx_view_get(void *const *mds, unsigned num_mds,
                 const uct_dcx_view_data_t *data,
                 uct_dcx_view_place_t **place_p)
{
    uct_dcx_view_status_t status = UCT_DCX_VIEW_BUSY;
    uct_dcx_view_place_t *place;

    pthread_mutex_lock(&uct_dcx_views.lock);
    uct_dcx_view_put_closed();
    place = uct_dcx_view_find_place(data);
    if (place != NULL) {
        status = uct_dcx_view_get_keys(place, mds, num_mds) ?
                 UCT_DCX_VIEW_OK : UCT_DCX_VIEW_UNSUPPORTED;
    }
    if (status == UCT_DCX_VIEW_UNSUPPORTED) {
        uct_dcx_view_put(place);
    }
    pthread_mutex_unlock(&uct_dcx_views.lock);
    *place_p = place;
    return status;
}


static void uct_dcx_view_close_keys(uct_dcx_view_place_t *place, int is_failed)
{
    unsigned i;

    for (i = 0; i < place->num_open; ++i) {
        uct_dcx_view_key_close(place->open[i], is_failed);
    }
    place->num_open = 0;
}


/* As many keys as can be; those that are open are counted. */
static uct_dcx_view_status_t
uct_dcx_view_open_keys(uct_dcx_view_place_t *place, unsigned num_mds)
{
    uct_dcx_view_status_t status = UCT_DCX_VIEW_OK;

    place->num_open = 0;
    while (place->num_open < num_mds) {
        status = uct_dcx_view_key_open(place->open[place->num_open],
                                       &place->data);
        if (status != UCT_DCX_VIEW_OK) {
            break;
        }
        place->num_open++;
    }
    return status;
}


/* 'is_known': it is found when its data come again, which those without an id
 * do not, however alike they look. */
static void uct_dcx_view_give_back(uct_dcx_view_place_t *place, int is_known)
{
    place->is_known = is_known && (place->data.id != 0);
    place->chain    = __atomic_load_n(&uct_dcx_views.closed, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&uct_dcx_views.closed, &place->chain,
                                        place, 0, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED)) {
    }
}


/* Not that of a GPU: devices could reach it, but who copies a view could
 * not. */
static int uct_dcx_view_is_host(const shape_data_t *data)
{
    const ucs_memtype_cache_t *cache = ucs_memtype_cache_global_instance;
    ucs_memory_info_t info;
    char *begin, *end;

    if ((cache == NULL) || (cache->pgtable.num_regions == 0)) {
        return 1;
    }

    shape_span(data, &begin, &end);
    return (ucs_memtype_cache_lookup(begin, end - begin, &info) != UCS_OK) ||
           (info.type == UCS_MEMORY_TYPE_HOST);
}


/* Returns how many keys it had in these domains, that others may have now. */
static unsigned
uct_dcx_view_release_place(uct_dcx_view_place_t *place, void *const *mds,
                           unsigned num_mds)
{
    unsigned num = 0;
    uct_dcx_view_key_t *key;
    unsigned i;

    for (key = place->keys; key < place->keys + UCT_DCX_VIEW_MAX_KEYS; ++key) {
        for (i = 0; i < num_mds; ++i) {
            if (key->md == mds[i]) {
                num += uct_dcx_view_key_cleanup(key);
                break;
            }
        }
    }
    return num;
}


/* A place that nobody uses, for the longest time, has the keys that are missing
 * for 'tried', which has some itself. Returns 0 if there is none. */
static int
uct_dcx_view_release_keys(const uct_dcx_view_place_t *tried, void *const *mds,
                          unsigned num_mds)
{
    unsigned num = 0;
    uct_dcx_view_place_t *place;

    pthread_mutex_lock(&uct_dcx_views.lock);
    uct_dcx_view_put_closed();
    ucs_list_for_each(place, &uct_dcx_views.free, list) {
        if (place != tried) {
            num = uct_dcx_view_release_place(place, mds, num_mds);
        }
        if (num > 0) {
            break;
        }
    }
    pthread_mutex_unlock(&uct_dcx_views.lock);
    return num > 0;
}


/* Gives back a place whose view could not be opened. What is so of the data,
 * and of where it lies, is so again: a try costs more than packing, and takes
 * registrations from others. The more have failed, the longer it is until the
 * next one. */
static void uct_dcx_view_failed(uct_dcx_view_place_t *place)
{
    int is_lasting = (place->status == UCT_DCX_VIEW_UNMAPPED) ||
                     (place->status == UCT_DCX_VIEW_TOO_MANY);

    if (is_lasting) {
        place->num_skips = UCS_MASK(place->num_tries);
        place->num_tries = ucs_min(place->num_tries + 1,
                                   UCT_DCX_VIEW_MAX_TRIES);
    } else {
        place->num_tries = 0;
    }

    uct_dcx_view_close_keys(place, 0);
    uct_dcx_view_give_back(place, is_lasting);
}


static uct_dcx_view_status_t
uct_dcx_view_try(void *const *mds, unsigned num_mds,
                 const uct_dcx_view_data_t *data,
                 uct_dcx_view_place_t **place_p)
{
    uct_dcx_view_place_t *place;
    uct_dcx_view_status_t status;

    status = uct_dcx_view_get(mds, num_mds, data, place_p);
    place  = *place_p;
    if (status != UCT_DCX_VIEW_OK) {
        return status;
    }

    if (place->num_skips > 0) {
        place->num_skips--;
        status = place->status;
        uct_dcx_view_give_back(place, 1);
        return status;
    }

    place->data.super = data->super; /* a shape is where it was, or another */
    status            = uct_dcx_view_open_keys(place, num_mds);
    place->status     = status;
    if (status == UCT_DCX_VIEW_OK) {
        place->num_tries = 0;
    } else {
        uct_dcx_view_failed(place);
    }
    return status;
}


uct_dcx_view_status_t
uct_dcx_view_open(void *const *mds, unsigned num_mds, const shape_data_t *data,
                  int is_dest, uct_dcx_view_t **view_p)
{
    const uct_dcx_view_data_t own = {
        .super   = *data,
        .id      = data->shape->id,
        .is_dest = is_dest
    };
    uct_dcx_view_place_t *place;
    uct_dcx_view_status_t status;
    size_t length;

    if (num_mds > UCT_DCX_VIEW_MAX_KEYS) {
        return UCT_DCX_VIEW_UNSUPPORTED;
    }

    if (__builtin_mul_overflow(data->count, data->shape->size, &length) ||
        (length > UCT_DCX_VIEW_LENGTH)) {
        return UCT_DCX_VIEW_TOO_LONG;
    }

    if (!uct_dcx_view_is_host(data)) {
        return UCT_DCX_VIEW_UNSUPPORTED;
    }

    do {
        status = uct_dcx_view_try(mds, num_mds, &own, &place);
    } while ((status == UCT_DCX_VIEW_BUSY) && (place != NULL) &&
             uct_dcx_view_release_keys(place, mds, num_mds));
    if (status != UCT_DCX_VIEW_OK) {
        return status;
    }

    place->super.length = length;
    __atomic_store_n(&place->is_open, 1, __ATOMIC_RELEASE);
    *view_p = &place->super;
    return UCT_DCX_VIEW_OK;
}


void uct_dcx_view_close(uct_dcx_view_t *view, int is_failed)
{
    uct_dcx_view_place_t *place = ucs_derived_of(view, uct_dcx_view_place_t);

    __atomic_store_n(&place->is_open, 0, __ATOMIC_RELEASE);
    uct_dcx_view_close_keys(place, is_failed);
    uct_dcx_view_give_back(place, 1);
}


int uct_dcx_view_find(uint64_t address, shape_data_t *data, size_t *offset_p)
{
    const uct_dcx_view_place_t *place;

    if (!uct_dcx_view_is_address(address)) {
        return 0;
    }

    place = __atomic_load_n(&uct_dcx_views.places[
                                    (address - UCT_DCX_VIEW_BASE) /
                                    UCT_DCX_VIEW_LENGTH],
                            __ATOMIC_ACQUIRE);
    if ((place == NULL) ||
        !__atomic_load_n(&place->is_open, __ATOMIC_ACQUIRE) ||
        (address - place->super.address >= place->super.length)) {
        return 0;
    }

    *data     = place->data.super;
    *offset_p = address - place->super.address;
    return 1;
}


/* --- the end of a domain -------------------------------------------------- */

static void uct_dcx_view_leave_md(uct_md_h md)
{
    uct_dcx_view_key_t *keys;
    unsigned i, j;

    for (i = 0; i < uct_dcx_views.num; ++i) {
        keys = uct_dcx_views.places[i]->keys;
        for (j = 0; j < UCT_DCX_VIEW_MAX_KEYS; ++j) {
            if (keys[j].md == md) {
                uct_dcx_view_key_cleanup(&keys[j]);
            }
        }
    }
}


/* Others may have a view open in their domains: who takes one for a domain does
 * so with the lock. */
void uct_dcx_view_leave(void *const *mds, unsigned num_mds)
{
    unsigned i;

    pthread_mutex_lock(&uct_dcx_views.lock);
    for (i = 0; i < num_mds; ++i) {
        uct_dcx_view_leave_md(mds[i]);
    }
    pthread_mutex_unlock(&uct_dcx_views.lock);
}
