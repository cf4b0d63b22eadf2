/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * For headers of UCX that include the config.h of UCX's own build whether there
 * is one or not, as ucs/arch/aarch64/cpu.h does: its macros have been given to
 * the compiler already (ucx_config.h, which configure makes).
 */
