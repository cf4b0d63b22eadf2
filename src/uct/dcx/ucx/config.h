/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * An empty header: headers of UCX such as ucs/arch/aarch64/cpu.h include the
 * config.h of UCX's own build even if there is none. The compiler has its
 * macros already (ucx_config.h, made by configure).
 */
