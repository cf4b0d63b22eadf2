/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The table of flow control; see dcx_fc_table.h.
 */
#include "dcx_fc_table.h"
#include "dcx_tx.h"

#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/math.h>

#define UCT_DCX_FC_TABLE_MIN 64

/* Maximum of free entries that are compared with the target of a new one */
#define UCT_DCX_FC_TABLE_SEARCH 1024


void uct_dcx_fc_table_init(uct_dcx_fc_table_t *table)
{
    memset(table, 0, sizeof(*table));
    table->max  = UCT_DCX_EP_NO_FC_ENTRY;
    table->free = UCT_DCX_EP_NO_FC_ENTRY;
}


void uct_dcx_fc_table_cleanup(uct_dcx_fc_table_t *table)
{
    ucs_free(table->entries);
}


/* Extends the table at its end. Returns 0 if that fails. */
static int uct_dcx_fc_table_extend(uct_dcx_fc_table_t *table)
{
    unsigned num = ucs_min(ucs_max(table->num * 2, UCT_DCX_FC_TABLE_MIN),
                           table->max);
    uct_dcx_fc_entry_t *entries;

    if (num <= table->num) {
        return 0;
    }

    entries = ucs_realloc(table->entries, num * sizeof(*entries),
                          "uct_dcx_fc_table");
    if (entries == NULL) {
        return 0;
    }

    memset(&entries[table->num], 0, (num - table->num) * sizeof(*entries));
    table->entries = entries;
    while (table->num < num) {
        entries[table->num].next = table->free;
        table->free              = table->num++;
    }
    return 1;
}


/* Returns a free entry: the entry of the last endpoint to the same target, if
 * there is one. Otherwise an unused entry (these are at the end of the list),
 * or else the one that is free for longest. */
static uint16_t uct_dcx_fc_table_take(uct_dcx_fc_table_t *table,
                                      const uct_dcx_av_t *av)
{
    unsigned left  = UCT_DCX_FC_TABLE_SEARCH;
    uint16_t *link = &table->free;
    uct_dcx_fc_entry_t *entry;
    uint16_t index;

    for (;;) {
        index = *link;
        entry = &table->entries[index];
        if ((memcmp(&entry->av, av, sizeof(*av)) == 0) || (entry->seq == 0) ||
            (entry->next == UCT_DCX_EP_NO_FC_ENTRY) || (--left == 0)) {
            *link = entry->next;
            return index;
        }
        link = &entry->next;
    }
}


uct_dcx_fc_entry_t *uct_dcx_fc_table_get(uct_dcx_fc_table_t *table,
                                         uct_dcx_ep_t *ep)
{
    uct_dcx_fc_entry_t *entry;

    if (ep->fc_entry != UCT_DCX_EP_NO_FC_ENTRY) {
        return &table->entries[ep->fc_entry];
    }

    if ((table->free == UCT_DCX_EP_NO_FC_ENTRY) &&
        !uct_dcx_fc_table_extend(table)) {
        return NULL;
    }

    ep->fc_entry   = uct_dcx_fc_table_take(table, &ep->av);
    entry          = &table->entries[ep->fc_entry];
    entry->ep      = ep;
    entry->reserve = 0;
    if (memcmp(&entry->av, &ep->av, sizeof(ep->av)) != 0) {
        entry->av            = ep->av;
        entry->extra.credits = 0;
    }
    return entry;
}


int uct_dcx_fc_table_block(uct_dcx_fc_table_t *table, uct_dcx_ep_t *ep)
{
    uct_dcx_tx_set_ep(ep, UCT_DCX_EP_BLOCKED);
    return table->num_blocked++ == 0;
}


void uct_dcx_fc_table_unblock(uct_dcx_fc_table_t *table, uct_dcx_ep_t *ep)
{
    table->num_blocked -= (ep->state == UCT_DCX_EP_BLOCKED);
    if (uct_dcx_ep_has_requested(ep)) {
        uct_dcx_tx_set_ep(ep, UCT_DCX_EP_OPEN);
    }
}


void uct_dcx_fc_table_leave(uct_dcx_fc_table_t *table, uct_dcx_ep_t *ep)
{
    if ((ep->state == UCT_DCX_EP_FAILED) ||
        (ep->fc_entry == UCT_DCX_EP_NO_FC_ENTRY)) {
        return;
    }

    uct_dcx_fc_table_unblock(table, ep);
    table->entries[ep->fc_entry].ep   = NULL;
    table->entries[ep->fc_entry].next = table->free;
    table->free                       = ep->fc_entry;
    ep->fc_entry                      = UCT_DCX_EP_NO_FC_ENTRY;
}
