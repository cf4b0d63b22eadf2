/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The program's code, as its modules hold it. Used by the trap, which must
 * look behind the breakpoints of a debugger, and by hca_patch, which must
 * change nothing but a module's text.
 */
#ifndef HCA_TEXT_H
#define HCA_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct hca_text {
    const char *path; /* of the module's file */
    off_t offset;     /* of the address in it */
    size_t left;      /* bytes of text from the address on */
};

/**
 * Find the loaded module that has an address in text that can be read and
 * executed but not written. May be called in the handler of a fault at it.
 *
 * @param out  path is valid as long as the module is loaded
 *
 * @return false if there is none.
 */
bool hca_text_find(uintptr_t addr, struct hca_text *out);

/**
 * Read text from the module's file, where no debugger has been.
 *
 * @return Bytes read, at most @len; 0 if there are none.
 */
size_t hca_text_original(uintptr_t addr, void *bytes, size_t len);

#endif
