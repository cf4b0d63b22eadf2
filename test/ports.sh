# Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE.
#
# TCP ports for servers and clients of tests. Sourced by bash.

# listening PORT: succeeds if a process listens there (state 0A), IPv4 or IPv6
listening()
{
    awk -v port="$(printf ':%04X' "$1")" \
        '$4 == "0A" && substr($2, length($2) - 4) == port { found = 1 }
         END { exit !found }' /proc/net/tcp /proc/net/tcp6 2> /dev/null
}

# free_port: prints a port without a listener, below the range of client ports.
# Tests that run side by side get different ports: a folder has an entry for
# each port in use.
free_port()
{
    local port
    while :; do
        port=$((RANDOM % 12000 + 20000))
        if ! listening "$port" &&
            { [ -z "${DCX_TEST_PORTS:-}" ] ||
                mkdir "$DCX_TEST_PORTS/$port" 2> /dev/null; }; then
            echo "$port"
            return
        fi
    done
}

# wait_listening PORT PID: waits until PID listens; fails when PID has ended
wait_listening()
{
    until listening "$1"; do
        kill -0 "$2" 2> /dev/null || return 1
        sleep 0.02
    done
}
