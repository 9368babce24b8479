#include "CRunLoopMessages.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
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

typedef union control {
  char bytes[CMSG_SPACE(sizeof(int) * CRL_MESSAGE_DESCRIPTORS)];
  struct cmsghdr alignment;
} control;

int crl_message_send(int socket, const void *header, size_t header_size, const void *payload, size_t payload_size,
                     const int *descriptors, int count) {
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

int crl_message_receive(int socket, int blocks, void *buffer, size_t size, int *descriptors, int *count,
                        int *truncation) {
  control room;
  struct iovec part = {buffer, size};
  struct msghdr message = {
      .msg_iov = &part, .msg_iovlen = 1, .msg_control = room.bytes, .msg_controllen = sizeof room.bytes};
  ssize_t answer = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | (blocks ? 0 : MSG_DONTWAIT));
  if (answer < 0) return -errno;
  for (struct cmsghdr *rights = CMSG_FIRSTHDR(&message); rights; rights = CMSG_NXTHDR(&message, rights)) {
    if (rights->cmsg_level != SOL_SOCKET || rights->cmsg_type != SCM_RIGHTS) continue;
    size_t bytes = rights->cmsg_len - CMSG_LEN(0);
    memcpy(descriptors + *count, CMSG_DATA(rights), bytes);
    *count += (int)(bytes / sizeof(int));
  }
  *truncation = (message.msg_flags & MSG_TRUNC ? 1 : 0) | (message.msg_flags & MSG_CTRUNC ? 2 : 0);
  return (int)answer;
}

int crl_message_poll(int socket, short events, int64_t nanoseconds) {
  struct pollfd entry = {.fd = socket, .events = events};
  struct timespec time = {.tv_sec = nanoseconds / 1000000000, .tv_nsec = nanoseconds % 1000000000};
  int answer = ppoll(&entry, 1, nanoseconds < 0 ? NULL : &time, NULL);
  return answer < 0 ? -errno : answer == 0 ? 0 : entry.revents;
}

int crl_message_make_directory(const char *path) { return result(mkdir(path, 0700)); }

static void fill(crl_file_status *status, const struct stat *file) {
  *status = (crl_file_status){
      .device = file->st_dev, .inode = file->st_ino, .mode = file->st_mode, .user = file->st_uid};
}

int crl_message_status(const char *path, crl_file_status *status) {
  struct stat file;
  if (lstat(path, &file) < 0) return -errno;
  fill(status, &file);
  return 0;
}

int crl_message_descriptor_status(int descriptor, crl_file_status *status) {
  struct stat file;
  if (fstat(descriptor, &file) < 0) return -errno;
  fill(status, &file);
  return 0;
}

int crl_message_open_lock(const char *path) {
  return result(open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
}

int crl_message_lock(int descriptor) { return result(flock(descriptor, LOCK_EX | LOCK_NB)); }
int crl_message_unlink(const char *path) { return result(unlink(path)); }
int crl_message_change_mode(const char *path, uint32_t mode) { return result(chmod(path, mode)); }

int crl_message_memory(void) { return result(memfd_create("message", MFD_CLOEXEC | MFD_ALLOW_SEALING)); }

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
