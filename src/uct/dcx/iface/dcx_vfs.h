/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/* An interface in UCX's virtual file system (ucx_vfs); see dcx_vfs.c. */
#ifndef UCT_DCX_VFS_H
#define UCT_DCX_VFS_H

#include <uct/api/uct.h>

/* iface_vfs_refresh of UCT: adds the files in_use, initiators, target, credits,
 * tags, mkeys and, if the process counts, figures. */
void uct_dcx_vfs_refresh(uct_iface_h tl_iface);

#endif
