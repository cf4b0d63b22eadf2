/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * AddressSanitizer, with which a program or the device under it may be built.
 */
#ifndef DCX_TEST_ASAN_H
#define DCX_TEST_ASAN_H

#include <dlfcn.h>

/* Returns true if this process has AddressSanitizer. */
inline bool asan_is_on()
{
    return dlsym(RTLD_DEFAULT, "__asan_init") != nullptr;
}

#endif
