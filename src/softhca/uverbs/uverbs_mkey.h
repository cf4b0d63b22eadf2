/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Memory keys, whatever they are made for: regions, windows, entries of others.
 */
#ifndef UVERBS_MKEY_H
#define UVERBS_MKEY_H

#include "uverbs.h"

#define UVERBS_ANY_QPN 0xffffffu /* hca_mkey.qpn: no QP in particular */

/* Key of an mkey: its number and its variant. */
uint32_t uverbs_key(const struct hca_mkey *mkey);

/* Gives a fresh mkey a variant, so that its key is none that libmlx5 takes
 * for "no key", and publishes it. @return the key. */
uint32_t uverbs_mkey_publish(struct hca_mkey *mkey);

/* The same with the variant that the program chose. */
uint32_t uverbs_mkey_publish_as(struct hca_mkey *mkey, uint8_t variant);

/* Takes the translation away (mkey->is_free) and waits for the accesses that
 * had begun before. Those of a process that died never end: not for them.
 * @return false if one of a process that lives did not end either, as that is
 * stopped: the mkey, and what belongs to it, has to stay as it is. */
bool uverbs_mkey_disable(struct hca_mkey *mkey);

/* Takes an mkey back once no access is under way on it; if one does not end,
 * its slot is lost until the process ends. */
void uverbs_mkey_free(struct hca_mkey *mkey);

/* In a forked child: nobody waits for anything. */
void uverbs_mkey_forked(void);

#endif
