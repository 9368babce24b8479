// SPDX-License-Identifier: Apache-2.0

// The socket by which a process is asked what its run loops hold, and the threads that answer. They are plain threads,
// with every signal but SIGBUS blocked, and use nothing that the program's own threads could keep from them for long.
#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
  // The most bytes of a frame, which follow its length of four bytes.
  CRLA_FRAME_LIMIT = 1 << 20,
  // How many tools can be answered at once.
  CRLA_CONNECTIONS = 8,
};

typedef struct crla_connection crla_connection;

// Listens in the process's directory, or in that of the process in another; again it has no effect. A negative number
// of an error: -EALREADY: it listens in another directory; -ENOENT: there is no directory; -EACCES: the process may do
// more than its caller.
int crla_listen(const char *parent);

// Sends a frame to a tool; 0 if it is gone.
int crla_send(crla_connection *connection, const void *bytes, size_t count);
// Lets the tool read the memory of the process where only a debugger could, as long as it is connected and holds a
// level; -EPERM if it holds none, -ESRCH if its number is not known.
int crla_permit(crla_connection *connection);
// Holds a level of the instruments as long as the tool is connected, instead of the one before.
void crla_hold(crla_connection *connection, uint32_t level);
