// SPDX-License-Identifier: Apache-2.0

// Calls that need a path for a file that is open already. The kernel's own paths of open files, in /proc/self/fd, are
// used where there is a /proc. As in the main header: a negative errno for a failure.
#pragma once

#include <stdint.h>

// Binds a Unix-domain socket to a name in an open directory. The name is shorter than the path of a socket may be.
int crl_placed_bind(int socket, int directory, const char *name);
// Connects a Unix-domain socket to a name in an open directory.
int crl_placed_connect(int socket, int directory, const char *name);

// Watches an open file (`inotify_add_watch`), wherever it is by now. The same file again is the same number, and what
// the queue reports of it already stays reported.
//
// `path` is the path by which a file was opened that is no directory, for a system without /proc; NULL: there is none.
// The result is ENOENT if another file has that path by now.
int crl_placed_watch(int queue, int file, const char *path, uint32_t events);

// Sets the mode of a file that is open with `O_PATH` and has a name in an open directory, or, with `AT_FDCWD`, a path.
//
// Without /proc, and before Linux 6.6, the name is what counts. The result is ENOENT if it is another file's by then.
int crl_placed_set_mode(int file, int directory, const char *name, uint32_t mode);
