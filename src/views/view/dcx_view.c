/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The table of views; see dcx_view.h. Views that are not in use are kept in the
 * order in which they were closed, and are found by the data that they had.
 * close() takes no lock: the next call that holds it files the closed views.
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
    /* memory domains that a view may have keys in: two for each of 8 devices */
    UCT_DCX_VIEW_MAX_KEYS = 16,
    UCT_DCX_VIEW_BUCKETS  = 256,
    /* Data that failed is tried again after up to 2^10 - 1 skipped calls. */
    UCT_DCX_VIEW_MAX_TRIES = 10
};


/* A place of the table */
typedef struct uct_dcx_view_place {
    uct_dcx_view_t super;
    ucs_list_link_t list;               /* in @free, while not in use */
    struct uct_dcx_view_place *chain;   /* next in its bucket, or in @closed */
    struct uct_dcx_view_place **bucket; /* of @data */
    int is_known;                       /* is in a bucket while not in use */
    int is_open;
    unsigned num_open;
    uct_dcx_view_data_t data;
    uct_dcx_view_status_t status; /* of the last try */
    unsigned num_tries;           /* failures in a row, up to a limit */
    unsigned num_skips;           /* calls to skip before the next try */
    uct_dcx_view_key_t *open[UCT_DCX_VIEW_MAX_KEYS]; /* in use */
    uct_dcx_view_key_t keys[UCT_DCX_VIEW_MAX_KEYS];
} uct_dcx_view_place_t;


static struct {
    ucs_memory_type_t type;
    pthread_mutex_t lock;
    unsigned max;
    unsigned num;
    ucs_list_link_t free;         /* oldest first */
    uct_dcx_view_place_t *closed; /* last one first; pushed without the lock */
    uct_dcx_view_place_t *buckets[UCT_DCX_VIEW_BUCKETS];
    uct_dcx_view_place_t *places[UCT_DCX_VIEW_OPS_MAX];
} uct_dcx_views = {
    .type = UCS_MEMORY_TYPE_UNKNOWN,
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .free = UCS_LIST_INITIALIZER(&uct_dcx_views.free, &uct_dcx_views.free),
};


/* Looks once into UCX's cache of memory types: the first look creates it. */
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


/* --- views that are not in use; with the lock ----------------------------- */

static uct_dcx_view_place_t **
uct_dcx_view_bucket(const uct_dcx_view_data_t *data)
{
    uint64_t hash = (uintptr_t)data->super.buffer ^ (data->id << 32) ^
                    (data->super.count << 8) ^ data->is_dest;

    hash *= 0x9e3779b97f4a7c15ul; /* as in the hash of layouts: dcx_sgl.c */
    return &uct_dcx_views.buckets[(hash >> 32) % UCT_DCX_VIEW_BUCKETS];
}


/* Returns the place in @bucket that had this data, or NULL. */
static uct_dcx_view_place_t *uct_dcx_view_known(uct_dcx_view_place_t **bucket,
                                                const uct_dcx_view_data_t *data)
{
    uct_dcx_view_place_t *place = *bucket;

    while ((place != NULL) &&
           ((place->data.id != data->id) ||
            (place->data.super.buffer != data->super.buffer) ||
            (place->data.super.count != data->super.count) ||
            (place->data.is_dest != data->is_dest))) {
        place = place->chain;
    }
    return place;
}


/* Files a place that is not in use. One whose last try failed keeps its bucket,
 * but is the first to get other data. */
static void uct_dcx_view_put(uct_dcx_view_place_t *place)
{
    if (place->is_known) {
        place->chain   = *place->bucket;
        *place->bucket = place;
    }
    if (place->is_known && (place->status == UCT_DCX_VIEW_OK)) {
        ucs_list_add_tail(&uct_dcx_views.free, &place->list);
    } else {
        ucs_list_add_head(&uct_dcx_views.free, &place->list);
    }
}


static void uct_dcx_view_take(uct_dcx_view_place_t *place)
{
    uct_dcx_view_place_t **link = place->bucket;

    ucs_list_del(&place->list);
    if (place->is_known) {
        while (*link != place) {
            link = &(*link)->chain;
        }
        *link = place->chain;
    }
}


/* Files the closed places, in the order in which they were closed. */
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


void uct_dcx_view_count(unsigned *num_used_p, unsigned *num_p, unsigned *max_p)
{
    pthread_mutex_lock(&uct_dcx_views.lock);
    uct_dcx_view_put_closed();
    *num_p      = uct_dcx_views.num;
    *max_p      = uct_dcx_views.max;
    *num_used_p = *num_p - ucs_list_length(&uct_dcx_views.free);
    pthread_mutex_unlock(&uct_dcx_views.lock);
}


/* Makes a place. Returns NULL if there are UCX_DCX_TYPES_MAX, or no memory. */
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


/* Gives a place other data, which none of its keys has. */
static void uct_dcx_view_change(uct_dcx_view_place_t *place,
                                uct_dcx_view_place_t **bucket,
                                const uct_dcx_view_data_t *data)
{
    unsigned i;

    place->data      = *data;
    place->bucket    = bucket;
    place->status    = UCT_DCX_VIEW_OK;
    place->num_tries = 0;
    place->num_skips = 0;
    for (i = 0; i < UCT_DCX_VIEW_MAX_KEYS; ++i) {
        place->keys[i].is_current = 0;
    }
}


/* Returns 1 if all free places have data that may come again. */
static int uct_dcx_view_is_new_needed(void)
{
    return ucs_list_is_empty(&uct_dcx_views.free) ||
           ucs_list_head(&uct_dcx_views.free, uct_dcx_view_place_t, list)
               ->is_known;
}


/* Takes the place that had this data; else a new one, or the one that was
 * unused for the longest time. Returns NULL if all are in use. */
static uct_dcx_view_place_t *
uct_dcx_view_find_place(const uct_dcx_view_data_t *data)
{
    uct_dcx_view_place_t **bucket = uct_dcx_view_bucket(data);
    uct_dcx_view_place_t *place   = uct_dcx_view_known(bucket, data);

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
        uct_dcx_view_change(place, bucket, data);
    }
    return place;
}


/* Returns the place's key in @md, or one that is in no domain yet. NULL: there
 * are too many. */
static uct_dcx_view_key_t *uct_dcx_view_key_of(uct_dcx_view_place_t *place,
                                               uct_md_h md)
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

static uct_dcx_view_status_t uct_dcx_view_get(void *const *mds,
                                              unsigned num_mds,
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
                     UCT_DCX_VIEW_OK :
                     UCT_DCX_VIEW_UNSUPPORTED;
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


/* Opens the keys, until one fails. @num_open counts the open ones. */
static uct_dcx_view_status_t uct_dcx_view_open_keys(uct_dcx_view_place_t *place,
                                                    unsigned num_mds)
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


/* Gives back a place. @is_known: it is to be found when its data come again.
 * Data of a shape without an id never do, however alike they look. */
static void uct_dcx_view_give_back(uct_dcx_view_place_t *place, int is_known)
{
    place->is_known = is_known && (place->data.id != 0);
    place->chain    = __atomic_load_n(&uct_dcx_views.closed, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&uct_dcx_views.closed, &place->chain,
                                        place, 0, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED)) {
    }
}


/* Returns 0 for memory of a GPU: devices could reach it, but the transport that
 * copies views could not. Fast check of the first address: the registration of
 * each region refuses such memory, too. */
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


/* Lists the keys of a place that have layouts in these domains as open ones;
 * returns 1 if there are any. */
static int uct_dcx_view_list_keys(uct_dcx_view_place_t *place, void *const *mds,
                                  unsigned num_mds)
{
    uct_dcx_view_key_t *key;
    unsigned i;

    place->num_open = 0;
    for (key = place->keys; key < place->keys + UCT_DCX_VIEW_MAX_KEYS; ++key) {
        for (i = 0; (i < num_mds) && (key->md != mds[i]); ++i) {
        }
        if ((i < num_mds) && !uct_dcx_view_key_is_empty(key)) {
            place->open[place->num_open++] = key;
        }
    }
    return place->num_open > 0;
}


/* Takes the place that was unused for the longest time, of those with layouts
 * in these domains, but not @tried. NULL: there is none. */
static uct_dcx_view_place_t *
uct_dcx_view_take_idle(const uct_dcx_view_place_t *tried, void *const *mds,
                       unsigned num_mds)
{
    uct_dcx_view_place_t *idle = NULL;
    uct_dcx_view_place_t *place;

    pthread_mutex_lock(&uct_dcx_views.lock);
    uct_dcx_view_put_closed();
    ucs_list_for_each (place, &uct_dcx_views.free, list) {
        if ((place != tried) && uct_dcx_view_list_keys(place, mds, num_mds)) {
            uct_dcx_view_take(place);
            idle = place;
            break;
        }
    }
    pthread_mutex_unlock(&uct_dcx_views.lock);
    return idle;
}


/* Frees keys for @tried: those of the least recently used other place that has
 * layouts in these domains. Forgets the data of that place. Returns 0 if there
 * is none. */
static int uct_dcx_view_release_keys(const uct_dcx_view_place_t *tried,
                                     void *const *mds, unsigned num_mds)
{
    uct_dcx_view_place_t *place = uct_dcx_view_take_idle(tried, mds, num_mds);
    unsigned i;

    if (place == NULL) {
        return 0;
    }

    for (i = 0; i < place->num_open; ++i) {
        uct_dcx_view_key_cleanup(place->open[i]);
    }

    pthread_mutex_lock(&uct_dcx_views.lock);
    for (i = 0; i < place->num_open; ++i) {
        uct_dcx_view_key_reset(place->open[i]);
    }
    place->num_open = 0;
    place->is_known = 0;
    uct_dcx_view_put(place);
    pthread_mutex_unlock(&uct_dcx_views.lock);
    return 1;
}


/* Gives back a place whose view could not be opened. If the data or its memory
 * was the reason, the next try will probably fail, too. A try costs more than
 * packing, and evicts registrations of others. So each failure doubles the
 * number of calls that are skipped before the next try. */
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


static uct_dcx_view_status_t uct_dcx_view_try(void *const *mds,
                                              unsigned num_mds,
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

    place->data.super = data->super; /* the shape may be another equal one */
    status            = uct_dcx_view_open_keys(place, num_mds);
    place->status     = status;
    if (status == UCT_DCX_VIEW_OK) {
        place->num_tries = 0;
    } else {
        uct_dcx_view_failed(place);
    }
    return status;
}


uct_dcx_view_status_t uct_dcx_view_open(void *const *mds, unsigned num_mds,
                                        const shape_data_t *data, int is_dest,
                                        uct_dcx_view_t **view_p)
{
    const uct_dcx_view_data_t own = {
        .super   = *data,
        .id      = data->shape->id,
        .is_dest = is_dest,
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

    place = __atomic_load_n(
        &uct_dcx_views
             .places[(address - UCT_DCX_VIEW_BASE) / UCT_DCX_VIEW_LENGTH],
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

/* No other thread uses keys of this domain, so their layouts are destroyed
 * without the lock. */
static void uct_dcx_view_leave_md(uct_md_h md)
{
    uct_dcx_view_key_t *keys;
    unsigned i, j;

    for (i = 0; i < uct_dcx_views.num; ++i) {
        keys = uct_dcx_views.places[i]->keys;
        for (j = 0; j < UCT_DCX_VIEW_MAX_KEYS; ++j) {
            if (keys[j].md == md) {
                pthread_mutex_unlock(&uct_dcx_views.lock);
                uct_dcx_view_key_cleanup(&keys[j]);
                pthread_mutex_lock(&uct_dcx_views.lock);
                uct_dcx_view_key_reset(&keys[j]);
            }
        }
    }
}


/* Looks at all places, in use or not: places in use have keys in other domains,
 * and a place gets its key in a domain only with the lock. */
void uct_dcx_view_leave(void *const *mds, unsigned num_mds)
{
    unsigned i;

    pthread_mutex_lock(&uct_dcx_views.lock);
    for (i = 0; i < num_mds; ++i) {
        uct_dcx_view_leave_md(mds[i]);
    }
    pthread_mutex_unlock(&uct_dcx_views.lock);
}
