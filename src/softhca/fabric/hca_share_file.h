/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The file of memory that the program has mapped shared, as peers can open it:
 * by a descriptor of this process, or by the id of a System V segment.
 */
#ifndef HCA_SHARE_FILE_H
#define HCA_SHARE_FILE_H

#include "hca_segment.h"
#include "softhca/base/hca_maps.h"

/* Fills in run->file and is_sysv. A descriptor is a new one, hidden from the
 * program: hca_share_file_close() closes it.
 * @return false if no peer can open the file: it is a device's, or is deleted
 *         and the program has no descriptor of it. */
bool hca_share_file_open(const struct hca_vma *vma, struct hca_share_run *run);
void hca_share_file_close(const struct hca_share_run *run);

#endif
