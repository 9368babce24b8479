// SPDX-License-Identifier: Apache-2.0

// Whose a file is, and which users have no number of their own. As in the main header: no logic, a negative errno for a
// failure.
#pragma once

#include <stdint.h>

// What a file is, and whose.
typedef struct crl_file_status {
  uint64_t device;
  uint64_t inode;
  uint32_t mode;
  uint32_t user;
  uint64_t size;
  // How many bytes there is storage for: fewer than the size, if there are holes.
  uint64_t allocated;
} crl_file_status;

// Of a name in a directory, where no symbolic link is followed, and of an open file.
int crl_status_at(int directory, const char *name, crl_file_status *status);
int crl_status_of(int descriptor, crl_file_status *status);

// Makes a directory that nobody else can look into (0700).
int crl_directory_make(int directory, const char *name);

// The user id that the kernel reports for users of other user namespaces who have none here; -1 if this namespace has
// an id for every user, as the initial one does.
int64_t crl_overflow_user(void);
