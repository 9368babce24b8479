// SPDX-License-Identifier: Apache-2.0

// Calls that need a path for a file that is already open. They use the kernel's paths of open files in /proc/self/fd
// if /proc is available. As in the main header, failures are returned as a negative errno.
#pragma once

#include <stdint.h>

// Binds a Unix-domain socket to a name in an open directory. The name must be shorter than the limit for socket paths.
int crl_placed_bind(int socket, int directory, const char *name);
// Connects a Unix-domain socket to a name in an open directory.
int crl_placed_connect(int socket, int directory, const char *name);

// Watches an open file (`inotify_add_watch`), even if it has been moved or removed. Watching the same file again
// returns the same number, and events already queued for it stay queued.
//
// `path` is the path by which a non-directory file was opened, for systems without /proc, or NULL if there is none.
// Fails with ENOENT if the path now refers to another file.
int crl_placed_watch(int queue, int file, const char *path, uint32_t events);

// Sets the mode of a file that is open with `O_PATH` and has a name in an open directory or, with `AT_FDCWD`, a path.
//
// Without /proc, and before Linux 6.6, the name is used. Fails with ENOENT if it now belongs to another file.
int crl_placed_set_mode(int file, int directory, const char *name, uint32_t mode);
