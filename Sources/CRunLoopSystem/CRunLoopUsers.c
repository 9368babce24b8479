// SPDX-License-Identifier: Apache-2.0

#include "CRunLoopUsers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static int filled(int answer, const struct stat *file, crl_file_status *status) {
  if (answer < 0) return -errno;
  *status = (crl_file_status){.device = file->st_dev,
                              .inode = file->st_ino,
                              .mode = file->st_mode,
                              .user = file->st_uid,
                              .size = (uint64_t)file->st_size,
                              .allocated = (uint64_t)file->st_blocks * 512};
  return 0;
}

int crl_status_at(int directory, const char *name, crl_file_status *status) {
  struct stat file;
  return filled(fstatat(directory, name, &file, AT_SYMLINK_NOFOLLOW), &file, status);
}

int crl_status_of(int descriptor, crl_file_status *status) {
  struct stat file;
  return filled(fstat(descriptor, &file), &file, status);
}

int crl_directory_make(int directory, const char *name) { return mkdirat(directory, name, 0700) < 0 ? -errno : 0; }

// Reads a small text file; the text is empty if the file cannot be read.
static void read_text(const char *path, char *text, size_t size) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t count = file < 0 ? -1 : read(file, text, size - 1);
  if (file >= 0) close(file);
  text[count > 0 ? count : 0] = 0;
}

int64_t crl_overflow_user(void) {
  unsigned user = 65534;
  unsigned long first, outside, count;
  char text[128];
  // The kernel accepts the whole range only if every id is mapped, including in all outer namespaces.
  read_text("/proc/self/uid_map", text, sizeof text);
  if (sscanf(text, "%lu %lu %lu", &first, &outside, &count) == 3 && first == 0 && count == UINT32_MAX) return -1;
  read_text("/proc/sys/kernel/overflowuid", text, sizeof text);
  sscanf(text, "%u", &user);
  return user;
}
