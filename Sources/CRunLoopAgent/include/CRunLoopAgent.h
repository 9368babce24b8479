// SPDX-License-Identifier: Apache-2.0

// The socket through which tools ask a process about its run loops, and the threads that respond. They are plain
// threads with every signal but SIGBUS blocked, and do not depend on resources that the program's own threads could
// hold for long.
#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
  // The maximum size of a frame, excluding its four-byte length.
  CRLA_FRAME_LIMIT = 1 << 20,
  // The maximum number of connected tools.
  CRLA_CONNECTIONS = 8,
};

typedef struct crla_connection crla_connection;

// Listens in the process's directory, or in its directory within another. Calling it again has no effect. Returns a
// negative error number: -EALREADY if it listens in another directory, -ENOENT if there is no directory, or -EACCES if
// the process has more rights than its caller.
int crla_listen(const char *parent);

// Sends a frame to a tool; returns 0 if it has disconnected.
int crla_send(crla_connection *connection, const void *bytes, size_t count);
// Lets the tool read the process's memory like a debugger while it is connected and holds a level. Returns -EPERM if
// it holds none, and -ESRCH if its process ID is unknown.
int crla_permit(crla_connection *connection);
// Holds a level of the instruments for the tool while it is connected, in place of its previous one.
void crla_hold(crla_connection *connection, uint32_t level);
