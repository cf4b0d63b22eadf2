/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * For headers of UCX that include the config.h of UCX's own build even if there
 * is none, as ucs/arch/aarch64/cpu.h does: the compiler has its macros already
 * (ucx_config.h, made by configure).
 */
