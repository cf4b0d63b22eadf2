/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * What DC initiators share in groups: a completion queue, and registered memory
 * for results of atomics. Part of the set.
 */
#ifndef UCT_DCX_DCI_GROUP_H
#define UCT_DCX_DCI_GROUP_H

#include "dcx_dci_set.h"


/* The next group of 'set'. Errors are logged at 'level'. */
ucs_status_t
uct_dcx_dci_group_init(uct_dcx_dci_set_t *set, uct_dcx_dci_group_t *group,
                       ucs_log_level_t level);

void uct_dcx_dci_group_cleanup(uct_dcx_dci_group_t *group);

/* Places for results of one initiator, in whole cache lines: one for each
 * WQEBB, and one for all atomics that are not fetched. */
size_t uct_dcx_dci_group_num_results(const uct_dcx_dci_set_t *set);

#endif
