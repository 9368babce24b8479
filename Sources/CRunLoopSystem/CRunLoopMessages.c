// SPDX-License-Identifier: Apache-2.0

#include "CRunLoopMessages.h"
#include "CRunLoopSafety.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

static int result(long answer) { return answer < 0 ? -errno : (int)answer; }

int crl_message_socket(void) { return result(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)); }

size_t crl_message_path_limit(void) { return sizeof(((struct sockaddr_un *)0)->sun_path); }

static int address(const char *path, struct sockaddr_un *address) {
  size_t length = strlen(path);
  if (length >= sizeof address->sun_path) return -ENAMETOOLONG;
  memset(address, 0, sizeof *address);
  address->sun_family = AF_UNIX;
  memcpy(address->sun_path, path, length);
  return 0;
}

int crl_message_bind(int socket, const char *path) {
  struct sockaddr_un name;
  int failure = address(path, &name);
  return failure ? failure : result(bind(socket, (struct sockaddr *)&name, sizeof name));
}

int crl_message_connect(int socket, const char *path) {
  struct sockaddr_un name;
  int failure = address(path, &name);
  return failure ? failure : result(connect(socket, (struct sockaddr *)&name, sizeof name));
}

int crl_message_listen(int socket) { return result(listen(socket, SOMAXCONN)); }

int crl_message_credentials(int socket, crl_credentials *credentials) {
  struct ucred peer;
  socklen_t size = sizeof peer;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0) return -errno;
  *credentials = (crl_credentials){.process = peer.pid, .user = peer.uid, .group = peer.gid};
  return 0;
}

int crl_message_set_timeout(int socket, int sends, int64_t nanoseconds) {
  struct timeval time = {.tv_sec = nanoseconds / 1000000000, .tv_usec = nanoseconds % 1000000000 / 1000};
  return result(setsockopt(socket, SOL_SOCKET, sends ? SO_SNDTIMEO : SO_RCVTIMEO, &time, sizeof time));
}

int crl_message_shut_down(int socket) { return result(shutdown(socket, SHUT_RDWR)); }

int crl_message_discard(int socket) {
  struct msghdr message = {0};
  return result(recvmsg(socket, &message, MSG_DONTWAIT));
}

int crl_message_drain(int socket, int limit) {
  // The end of the packets and an empty packet look the same, except that only a packet has a sender.
  int on = 1;
  if (setsockopt(socket, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) < 0) return -errno;
  for (int count = 0; count < limit; count++) {
    // The control buffer has room only for the sender.
    union {
      char bytes[CMSG_SPACE(sizeof(struct ucred))];
      struct cmsghdr alignment;
    } room;
    char byte;
    struct iovec part = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = room.bytes, .msg_controllen = sizeof room.bytes};
    ssize_t answer = recvmsg(socket, &message, MSG_PEEK | MSG_DONTWAIT);
    // A pending error of the socket is reported only once.
    if (answer < 0 && errno == ECONNRESET) continue;
    if (answer < 0) return -errno;
    if (message.msg_flags & MSG_CTRUNC) return 0;
    if (answer == 0 && message.msg_controllen == 0) return 1;
    int failure = crl_message_discard(socket);
    if (failure < 0) return failure;
  }
  return 0;
}

typedef union control {
  char bytes[CMSG_SPACE(sizeof(int) * CRL_MESSAGE_DESCRIPTORS)];
  struct cmsghdr alignment;
} control;

enum { SMALL_PACKET = 1024 };

int crl_message_send(int socket, const void *header, size_t header_size, const void *payload, size_t payload_size,
                     const int *descriptors, int count) {
  // Equivalent to the code below. For a small packet, copying the parts here is faster than having the kernel gather
  // them.
  char packet[SMALL_PACKET];
  if (count <= 0 && header_size + payload_size <= sizeof packet) {
    memcpy(packet, header, header_size);
    if (payload_size > 0) memcpy(packet + header_size, payload, payload_size);
    return result(send(socket, packet, header_size + payload_size, MSG_DONTWAIT | MSG_NOSIGNAL));
  }
  struct iovec parts[2] = {{(void *)header, header_size}, {(void *)payload, payload_size}};
  struct msghdr message = {.msg_iov = parts, .msg_iovlen = payload_size > 0 ? 2 : 1};
  if (count <= 0) return result(sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL));
  if (count > CRL_MESSAGE_DESCRIPTORS) return -EINVAL;
  control room;
  size_t size = sizeof(int) * (size_t)count;
  memset(&room, 0, CMSG_SPACE(size));
  message.msg_control = room.bytes;
  message.msg_controllen = CMSG_SPACE(size);
  struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(size);
  memcpy(CMSG_DATA(rights), descriptors, size);
  return result(sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL));
}

static void take_descriptors(struct msghdr *message, int *descriptors, int *count, int *truncation) {
  for (struct cmsghdr *rights = CMSG_FIRSTHDR(message); rights; rights = CMSG_NXTHDR(message, rights)) {
    if (rights->cmsg_level != SOL_SOCKET || rights->cmsg_type != SCM_RIGHTS) continue;
    size_t bytes = rights->cmsg_len - CMSG_LEN(0);
    memcpy(descriptors + *count, CMSG_DATA(rights), bytes);
    *count += (int)(bytes / sizeof(int));
  }
  *truncation = (message->msg_flags & MSG_TRUNC ? 1 : 0) | (message->msg_flags & MSG_CTRUNC ? 2 : 0);
}

int crl_message_receive(int socket, int blocks, void *buffer, size_t size, int *descriptors, int *count,
                        int *truncation) {
  control room;
  struct iovec part = {buffer, size};
  struct msghdr message = {
      .msg_iov = &part, .msg_iovlen = 1, .msg_control = room.bytes, .msg_controllen = sizeof room.bytes};
  ssize_t answer = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | (blocks ? 0 : MSG_DONTWAIT));
  if (answer < 0) return -errno;
  take_descriptors(&message, descriptors, count, truncation);
  return (int)answer;
}

int crl_message_peek(int socket, void *buffer, size_t size, int *descriptors, int limit, int *count,
                     int *truncation) {
  if (limit < 0 || limit > CRL_MESSAGE_DESCRIPTORS) return -EINVAL;
  control room;
  struct iovec part = {buffer, size};
  // The length excludes padding, in which another descriptor could fit.
  struct msghdr message = {.msg_iov = &part,
                           .msg_iovlen = 1,
                           .msg_control = limit > 0 ? room.bytes : NULL,
                           .msg_controllen = limit > 0 ? CMSG_LEN(sizeof(int) * (size_t)limit) : 0};
  ssize_t answer = recvmsg(socket, &message, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (answer < 0) return -errno;
  take_descriptors(&message, descriptors, count, truncation);
  return (int)answer;
}

int crl_message_unread(int socket) {
  int bytes = 0;
  return ioctl(socket, SIOCOUTQ, &bytes) < 0 ? -errno : bytes;
}

int crl_message_can_allocate(size_t size) {
  // Volatile, because the compiler would otherwise remove the call for memory that is not used.
  void *volatile memory = malloc(size);
  if (!memory) return -ENOMEM;
  free(memory);
  return 0;
}

int crl_message_poll(int socket, short events, int64_t nanoseconds) {
  struct pollfd entry = {.fd = socket, .events = events};
  struct timespec time = {.tv_sec = nanoseconds / 1000000000, .tv_nsec = nanoseconds % 1000000000};
  int answer = ppoll(&entry, 1, nanoseconds < 0 ? NULL : &time, NULL);
  return answer < 0 ? -errno : answer == 0 ? 0 : entry.revents;
}

int crl_message_open_lock(int directory, const char *name) {
  return crl_file_make_or_open(directory, name, 0600);
}

int crl_message_lock(int descriptor) { return result(flock(descriptor, LOCK_EX | LOCK_NB)); }
int crl_message_unlink(int directory, const char *name) { return result(unlinkat(directory, name, 0)); }

int crl_message_set_mode(int descriptor, uint32_t mode) { return result(fchmod(descriptor, mode)); }

int crl_message_memory(void) { return result(memfd_create("message", MFD_CLOEXEC | MFD_ALLOW_SEALING)); }

enum { TMPFS_KIND = 0x01021994, RAMFS_KIND = 0x858458f6 };

static int is_in_memory(int file) {
  struct statfs system;
  return fstatfs(file, &system) == 0 && ((uint32_t)system.f_type == TMPFS_KIND || (uint32_t)system.f_type == RAMFS_KIND);
}

// Creates an unnamed file in a directory of a memory file system.
static int nameless_file(const char *directory) {
  int file = crl_file_make_nameless(directory);
  if (file < 0) return file;
  if (is_in_memory(file)) return file;
  close(file);
  return -EMEDIUMTYPE;
}

int crl_message_memory_file(void) {
  const char *places[] = {crl_environment("XDG_RUNTIME_DIR"), "/dev/shm", "/run/shm", "/tmp"};
  int answer = -ENOENT;
  for (size_t index = 0; index < sizeof places / sizeof *places; index++) {
    if (!places[index] || *places[index] != '/') continue;
    answer = nameless_file(places[index]);
    if (answer >= 0) break;
  }
  return answer;
}

int crl_message_memory_is_nameless(int descriptor) {
  struct stat status;
  if (fstat(descriptor, &status) < 0) return -errno;
  // Memory that could have been sealed must be.
  int seals = fcntl(descriptor, F_GET_SEALS);
  if (seals >= 0 && !(seals & F_SEAL_SEAL)) return 0;
  return S_ISREG(status.st_mode) && status.st_nlink == 0 && is_in_memory(descriptor);
}

int crl_message_memory_write(int descriptor, const void *bytes, size_t count) {
  return result(write(descriptor, bytes, count));
}

enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE };

int crl_message_memory_seal(int descriptor) { return result(fcntl(descriptor, F_ADD_SEALS, SEALS)); }

int crl_message_memory_is_sealed(int descriptor) {
  int seals = fcntl(descriptor, F_GET_SEALS);
  return seals < 0 ? -errno : (seals & SEALS) == SEALS;
}

int crl_message_memory_read(int descriptor, void *bytes, size_t count, uint64_t offset) {
  return result(pread(descriptor, bytes, count, (off_t)offset));
}

int crl_message_duplicate(int descriptor) { return result(fcntl(descriptor, F_DUPFD_CLOEXEC, 0)); }
