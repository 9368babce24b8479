// SPDX-License-Identifier: Apache-2.0

#include "CRunLoopSystem.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

const char *crl_environment(const char *name) { return secure_getenv(name); }

const char *crl_environment_word(const char *name) { return getenv(name); }

int crl_file_make(int directory, const char *name, uint32_t mode) {
  int file = openat(directory, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
  return file < 0 ? -errno : file;
}

int crl_file_make_or_open(int directory, const char *name, uint32_t mode) {
  for (;;) {
    int file = crl_file_make(directory, name, mode);
    if (file != -EEXIST) return file;
    file = openat(directory, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    // Another process of this user may have removed the file between the two calls.
    if (file < 0 && errno == ENOENT) continue;
    if (file < 0) return -errno;
    struct stat status;
    if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() && status.st_nlink <= 1)
      return file;
    close(file);
    return -EPERM;
  }
}

int crl_file_make_unnamed(int directory, uint32_t mode) {
  int file = openat(directory, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
  if (file < 0) return -errno;
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  if (access(path, F_OK) == 0) return file;
  close(file);
  return -EOPNOTSUPP;
}

int crl_file_make_nameless(const char *directory) {
  int file = open(directory, O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
  if (file >= 0) return file;
  if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL) return -errno;
  char path[4096];
  int size = snprintf(path, sizeof path, "%s/runloop-XXXXXX", directory);
  if (size < 0 || (size_t)size >= sizeof path) return -ENAMETOOLONG;
  file = mkostemp(path, O_CLOEXEC);
  if (file < 0) return -errno;
  if (unlink(path) == 0) return file;
  int error = errno;
  close(file);
  return -error;
}

int crl_file_name(int file, int directory, const char *name) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  return linkat(AT_FDCWD, path, directory, name, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}

uint32_t crl_file_masked_mode(uint32_t mode) {
  // umask(2) cannot read the mask without changing it for all threads.
  unsigned mask = 077;
  FILE *status = fopen("/proc/self/status", "re");
  if (status == NULL) return mode & ~mask;
  char line[256];
  while (fgets(line, sizeof line, status)) {
    if (sscanf(line, "Umask: %o", &mask) == 1) break;
  }
  fclose(status);
  return mode & ~mask;
}
