// SPDX-License-Identifier: Apache-2.0

// File ownership, and the user id that stands for unmapped users. As in the main header, there is no logic, and
// failures are returned as a negative errno.
#pragma once

#include <stdint.h>

// The status of a file, including its owner.
typedef struct crl_file_status {
  uint64_t device;
  uint64_t inode;
  uint32_t mode;
  uint32_t user;
  uint64_t size;
  // The number of bytes for which storage is allocated; fewer than `size` if the file has holes.
  uint64_t allocated;
} crl_file_status;

// The status of a name in a directory, without following a symbolic link, and of an open file.
int crl_status_at(int directory, const char *name, crl_file_status *status);
int crl_status_of(int descriptor, crl_file_status *status);

// Creates a directory that no other user can access (0700).
int crl_directory_make(int directory, const char *name);

// The user id that stands for users of other user namespaces without an id in this one, or -1 if this namespace maps
// every user, as the initial one does.
int64_t crl_overflow_user(void);
