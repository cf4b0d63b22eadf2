/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Objects that another process knows by a name: finding them, and destroying
 * them as far as another process can.
 */
#include "hca_obj.h"
#include "hca_proc.h"

#include <errno.h>

struct hca_obj_search {
    enum hca_kind kind;
    const struct hca_name *name;
    struct hca_obj *found;
};

static struct hca_name *hca_obj_name(enum hca_kind kind, const void *obj)
{
    return (struct hca_name *)((char *)obj + hca_obj_kinds[kind].name_at);
}

static bool hca_obj_is_named(enum hca_kind kind, const struct hca_obj *obj,
                             const struct hca_name *name)
{
    const struct hca_name *own = hca_obj_name(kind, obj);

    /* pairs with the store in hca_obj_publish() */
    return (atomic_load_explicit(&obj->num, memory_order_acquire) != 0) &&
           (own->file == name->file) && (own->handle == name->handle);
}

static void hca_obj_match(void *ptr, void *arg)
{
    struct hca_obj_search *search = arg;

    if (hca_obj_is_named(search->kind, ptr, search->name)) {
        search->found = ptr;
    }
}

void *hca_obj_by_name(enum hca_kind kind, const struct hca_name *name)
{
    struct hca_obj_search search = {.kind = kind, .name = name};

    hca_obj_foreach(kind, HCA_ANY_PROC, hca_obj_match, &search);
    return ((search.found != NULL) && hca_proc_alive(search.found->proc)) ?
               search.found :
               NULL;
}

int hca_obj_give_up(enum hca_kind kind, void *ptr, const struct hca_name *name)
{
    struct hca_obj *obj = ptr;
    bool is_there;

    hca_obj_hold(kind, obj);
    is_there = hca_obj_is_named(kind, obj, name);
    if (is_there) {
        hca_obj_name(kind, obj)->file = 0;
        if (hca_obj_kinds[kind].give_up != NULL) {
            hca_obj_kinds[kind].give_up(obj);
        }
        atomic_fetch_add(&hca_fabric->procs[obj->proc].given_up, 1);
    }
    hca_obj_unlock(obj);
    return is_there ? 0 : -ENOENT;
}

bool hca_obj_is_given_up(enum hca_kind kind, const void *obj)
{
    return hca_obj_name(kind, obj)->file == 0;
}
