/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Paths between ports.
 */
#ifndef HCA_PATH_H
#define HCA_PATH_H

#include "softhca/obj/hca_objs.h"

/* @return true if a path that starts at device @from ends at device @to. */
bool hca_path_leads(const struct hca_path *path, unsigned from, unsigned to);

#endif
