/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Log of UCX and its transports, for tests: while a reader exists, it collects
 * errors and warnings of this thread, or messages of more levels, which are not
 * printed.
 */
#ifndef DCX_TEST_UCX_LOG_H
#define DCX_TEST_UCX_LOG_H

#include <cstdarg>
#include <cstdio>
#include <string>
#include <ucs/debug/log_def.h>

class ucx_log_reader {
public:
    explicit ucx_log_reader(ucs_log_level_t most = UCS_LOG_LEVEL_WARN)
    {
        level_of_thread() = most;
        text().clear();
        ucs_log_push_handler(note);
    }

    ~ucx_log_reader()
    {
        level_of_thread() = UCS_LOG_LEVEL_WARN;
        ucs_log_pop_handler();
    }

    ucx_log_reader(const ucx_log_reader &) = delete;

    /* Returns the lines that were logged since the last call. */
    std::string take()
    {
        std::string taken;

        taken.swap(text());
        return taken;
    }

private:
    static std::string &text()
    {
        static thread_local std::string text;

        return text;
    }

    static ucs_log_level_t &level_of_thread()
    {
        static thread_local ucs_log_level_t level;

        return level;
    }

    static ucs_log_func_rc_t note(const char *, unsigned, const char *,
                                  ucs_log_level_t level,
                                  const ucs_log_component_config_t *,
                                  const char *message, va_list args)
    {
        char line[1024];

        if (level > level_of_thread()) {
            return UCS_LOG_FUNC_RC_CONTINUE;
        }
        vsnprintf(line, sizeof(line), message, args);
        text() += std::string(line) + "\n";
        return UCS_LOG_FUNC_RC_STOP;
    }
};

#endif
