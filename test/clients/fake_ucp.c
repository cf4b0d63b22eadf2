/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Preloaded by a test of the loader: reports another version of UCX than the
 * one that dcx was built for.
 */
const char *ucp_get_version_string(void);

const char *ucp_get_version_string(void)
{
    return "9.9.9";
}
