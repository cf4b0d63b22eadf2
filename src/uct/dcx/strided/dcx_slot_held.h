/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Key slots whose users let go of them when a peer does something: buffers that
 * wait for a message, data that waits to be fetched. Such a user may wait for what
 * other operations do, which need slots, too: so only half of each size can be
 * held. Called as dcx_slot.h is.
 */
#ifndef UCT_DCX_SLOT_HELD_H
#define UCT_DCX_SLOT_HELD_H

#include "dcx_slot.h"


/* As uct_dcx_slots_get(), but for an unknown time. Beside what that returns,
 * UCS_ERR_EXCEEDS_LIMIT says that as many as can be are held: do without. After
 * UCS_ERR_BUSY slots come back, with nobody's help. */
ucs_status_t
uct_dcx_slots_get_held(uct_dcx_slots_t *slots, const uct_dcx_layout_t *layout,
                       uct_dcx_key_slot_t **slot_p);

void uct_dcx_slots_put_held(uct_dcx_slots_t *slots, uct_dcx_key_slot_t *slot);

#endif
