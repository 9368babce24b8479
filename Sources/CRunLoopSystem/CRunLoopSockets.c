// SPDX-License-Identifier: Apache-2.0

#include "CRunLoopSockets.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/un.h>

int crl_socket_stream(int family) {
  int answer = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  return answer < 0 ? -errno : answer;
}

int crl_socket_datagram(int family) {
  int answer = socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  return answer < 0 ? -errno : answer;
}

int crl_socket_accept(int descriptor, void *address, uint32_t capacity, uint32_t *length) {
  socklen_t stored = capacity;
  int answer = accept4(descriptor, address, &stored, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (answer < 0) return -errno;
  *length = stored < capacity ? stored : capacity;
  return answer;
}

// A buffer for the ancillary data of a message: descriptors, and the data enabled by socket options.
typedef union control {
  char bytes[CMSG_SPACE(sizeof(int) * crl_passed_most) + 256];
  struct cmsghdr aligned;
} control;

enum { no_time = -1 };

// Since Linux 6.5: a descriptor of the sender's process, if enabled by an option.
#ifndef SCM_PIDFD
#define SCM_PIDFD 4
#endif

static void read_socket_part(const struct cmsghdr *part, crl_ancillary *ancillary) {
  const unsigned char *data = CMSG_DATA(part);
  size_t length = part->cmsg_len - CMSG_LEN(0);
  if (part->cmsg_type == SCM_RIGHTS) {
    size_t count = length / sizeof(int), room = crl_passed_most - (size_t)ancillary->descriptor_count;
    if (count > room) count = room;
    memcpy(ancillary->descriptors + ancillary->descriptor_count, data, count * sizeof(int));
    ancillary->descriptor_count += (int32_t)count;
  } else if (part->cmsg_type == SCM_PIDFD && length >= sizeof(int)) {
    int process;
    memcpy(&process, data, sizeof process);
    if (process >= 0) close(process);
  } else if (part->cmsg_type == SCM_TIMESTAMPNS && length >= sizeof(struct timespec)) {
    struct timespec time;
    memcpy(&time, data, sizeof time);
    ancillary->nanoseconds = (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
  }
}

static void read_ipv4_part(const struct cmsghdr *part, crl_ancillary *ancillary) {
  struct in_pktinfo info;
  if (part->cmsg_type != IP_PKTINFO || part->cmsg_len < CMSG_LEN(sizeof info)) return;
  // On an IPv6 socket, the other control message takes precedence.
  if (ancillary->family == AF_INET6) return;
  memcpy(&info, CMSG_DATA(part), sizeof info);
  ancillary->family = AF_INET;
  ancillary->interface = (uint32_t)info.ipi_ifindex;
  memcpy(ancillary->destination, &info.ipi_addr, sizeof info.ipi_addr);
  memcpy(ancillary->local, &info.ipi_spec_dst, sizeof info.ipi_spec_dst);
}

static void read_ipv6_part(const struct cmsghdr *part, crl_ancillary *ancillary) {
  struct in6_pktinfo info;
  if (part->cmsg_type != IPV6_PKTINFO || part->cmsg_len < CMSG_LEN(sizeof info)) return;
  memcpy(&info, CMSG_DATA(part), sizeof info);
  ancillary->family = AF_INET6;
  ancillary->interface = info.ipi6_ifindex;
  memcpy(ancillary->destination, &info.ipi6_addr, sizeof info.ipi6_addr);
  // A multicast address, including an IPv4-mapped one, cannot be a source address.
  int is_group = IN6_IS_ADDR_MULTICAST(&info.ipi6_addr) ||
                 (IN6_IS_ADDR_V4MAPPED(&info.ipi6_addr) && info.ipi6_addr.s6_addr[12] >= 224);
  if (!is_group) memcpy(ancillary->local, &info.ipi6_addr, sizeof info.ipi6_addr);
}

static void read_ancillary(const struct msghdr *message, crl_ancillary *ancillary) {
  memset(ancillary, 0, offsetof(crl_ancillary, descriptors));
  ancillary->nanoseconds = no_time;
  ancillary->has_lost = (message->msg_flags & MSG_CTRUNC) != 0;
  struct msghdr *parts = (struct msghdr *)message;
  for (struct cmsghdr *part = CMSG_FIRSTHDR(parts); part; part = CMSG_NXTHDR(parts, part)) {
    if (part->cmsg_level == SOL_SOCKET) read_socket_part(part, ancillary);
    if (part->cmsg_level == IPPROTO_IP) read_ipv4_part(part, ancillary);
    if (part->cmsg_level == IPPROTO_IPV6) read_ipv6_part(part, ancillary);
  }
}

int crl_ancillary_receive(int descriptor, void *bytes, size_t count, void *address, uint32_t *length,
                          crl_ancillary *ancillary) {
  control room;
  struct iovec part = {bytes, count > INT32_MAX ? INT32_MAX : count};
  struct msghdr message = {.msg_name = address, .msg_namelen = address ? *length : 0, .msg_iov = &part, .msg_iovlen = 1,
                           .msg_control = room.bytes, .msg_controllen = sizeof room.bytes};
  // For a stream, MSG_TRUNC would discard the bytes.
  int flags = MSG_DONTWAIT | MSG_CMSG_CLOEXEC | (address ? MSG_TRUNC : 0);
#if defined(SYS_recvmsg) && !__has_feature(thread_sanitizer)
  ssize_t answer = syscall(SYS_recvmsg, descriptor, &message, flags);
#else
  ssize_t answer = recvmsg(descriptor, &message, flags);
#endif
  if (answer < 0) return -errno;
  if (address && message.msg_namelen < *length) *length = message.msg_namelen;
  read_ancillary(&message, ancillary);
  return (int)answer;
}

int crl_datagram_report_destination(int descriptor, int family) {
  int on = 1, level = family == AF_INET6 ? IPPROTO_IPV6 : IPPROTO_IP;
  int option = family == AF_INET6 ? IPV6_RECVPKTINFO : IP_PKTINFO;
  return setsockopt(descriptor, level, option, &on, sizeof on) < 0 ? -errno : 0;
}

int crl_datagram_report_time(int descriptor) {
  int on = 1;
  return setsockopt(descriptor, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on) < 0 ? -errno : 0;
}

static int read_ipv4(const void *address, uint32_t length, struct sockaddr_in *read);
static int read_ipv6(const void *address, uint32_t length, struct sockaddr_in6 *read);

// Fills in the control message for the source address. Returns 0 or a negative errno.
static int write_source(struct msghdr *message, int family, const void *source, uint32_t length) {
  struct cmsghdr *part = CMSG_FIRSTHDR(message);
  struct sockaddr_in ipv4;
  struct sockaddr_in6 ipv6;
  if (family == AF_INET && read_ipv4(source, length, &ipv4)) {
    struct in_pktinfo info = {.ipi_spec_dst = ipv4.sin_addr};
    part->cmsg_level = IPPROTO_IP, part->cmsg_type = IP_PKTINFO, part->cmsg_len = CMSG_LEN(sizeof info);
    memcpy(CMSG_DATA(part), &info, sizeof info);
  } else if (family == AF_INET6 && read_ipv6(source, length, &ipv6)) {
    struct in6_pktinfo info = {.ipi6_addr = ipv6.sin6_addr, .ipi6_ifindex = ipv6.sin6_scope_id};
    part->cmsg_level = IPPROTO_IPV6, part->cmsg_type = IPV6_PKTINFO, part->cmsg_len = CMSG_LEN(sizeof info);
    memcpy(CMSG_DATA(part), &info, sizeof info);
  } else {
    return -EAFNOSUPPORT;
  }
  message->msg_controllen = CMSG_ALIGN(part->cmsg_len);
  return 0;
}

int crl_datagram_send_from(int descriptor, const void *bytes, size_t count, const void *address, uint32_t length,
                           const void *source, uint32_t source_length) {
  if (count > INT32_MAX) return -EMSGSIZE;
  int family = 0;
  socklen_t size = sizeof family;
  if (getsockopt(descriptor, SOL_SOCKET, SO_DOMAIN, &family, &size) < 0) return -errno;
  control room = {0};
  struct iovec part = {(void *)bytes, count};
  struct msghdr message = {.msg_name = (void *)address, .msg_namelen = length, .msg_iov = &part, .msg_iovlen = 1,
                           .msg_control = room.bytes, .msg_controllen = sizeof room.bytes};
  int problem = write_source(&message, family, source, source_length);
  if (problem < 0) return problem;
  ssize_t answer = sendmsg(descriptor, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  return answer < 0 ? -errno : (int)answer;
}

struct burst {
  struct mmsghdr headers[crl_burst_most];
  struct iovec parts[crl_burst_most];
  struct sockaddr_storage senders[crl_burst_most];
  control controls[crl_burst_most];
};

size_t crl_burst_size(void) { return sizeof(struct burst); }

int crl_burst_receive(int descriptor, void *memory, void *bytes, size_t size, size_t stride, uint32_t count,
                      int has_ancillary) {
  struct burst *burst = memory;
  if (count > crl_burst_most) count = crl_burst_most;
  for (uint32_t index = 0; index < count; index++) {
    burst->parts[index] = (struct iovec){(char *)bytes + index * stride, size};
    burst->headers[index].msg_hdr = (struct msghdr){
        .msg_name = &burst->senders[index],
        .msg_namelen = sizeof burst->senders[index],
        .msg_iov = &burst->parts[index],
        .msg_iovlen = 1,
        .msg_control = has_ancillary ? burst->controls[index].bytes : NULL,
        .msg_controllen = has_ancillary ? sizeof burst->controls[index].bytes : 0,
    };
  }
  int flags = MSG_DONTWAIT | MSG_TRUNC | MSG_CMSG_CLOEXEC;
#if defined(SYS_recvmmsg) && !__has_feature(thread_sanitizer)
  long answer = syscall(SYS_recvmmsg, descriptor, burst->headers, count, flags, NULL);
#else
  long answer = recvmmsg(descriptor, burst->headers, count, flags, NULL);
#endif
  // Some seccomp filters do not allow the call. In that case, one datagram is received at a time.
  if (answer < 0 && (errno == ENOSYS || errno == EPERM) && count > 0) {
    ssize_t length = recvmsg(descriptor, &burst->headers[0].msg_hdr, flags);
    if (length < 0) return -errno;
    burst->headers[0].msg_len = (unsigned)length;
    return 1;
  }
  return answer < 0 ? -errno : (int)answer;
}

int crl_burst_has_descriptors(const void *memory, uint32_t index) {
  const struct burst *burst = memory;
  struct msghdr *message = (struct msghdr *)&burst->headers[index].msg_hdr;
  if (message->msg_flags & MSG_CTRUNC) return 1;
  for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part; part = CMSG_NXTHDR(message, part)) {
    if (part->cmsg_level == SOL_SOCKET && (part->cmsg_type == SCM_RIGHTS || part->cmsg_type == SCM_PIDFD)) return 1;
  }
  return 0;
}

void crl_burst_ancillary(const void *memory, uint32_t index, crl_ancillary *ancillary) {
  const struct burst *burst = memory;
  read_ancillary(&burst->headers[index].msg_hdr, ancillary);
}

uint32_t crl_burst_length(const void *memory, uint32_t index) {
  const struct burst *burst = memory;
  return burst->headers[index].msg_len;
}

const void *crl_burst_sender(const void *memory, uint32_t index, uint32_t *length) {
  const struct burst *burst = memory;
  uint32_t stored = burst->headers[index].msg_hdr.msg_namelen;
  *length = stored < sizeof burst->senders[index] ? stored : sizeof burst->senders[index];
  return &burst->senders[index];
}

int crl_socket_type(int descriptor) {
  int type = 0;
  socklen_t length = sizeof type;
  return getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &length) < 0 ? -errno : type;
}

int crl_socket_accepts(int descriptor) {
  int accepts = 0;
  socklen_t length = sizeof accepts;
  return getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &accepts, &length) < 0 ? -errno : accepts;
}

int crl_descriptor_set_flags(int descriptor) {
  int flags = fcntl(descriptor, F_GETFL);
  if (flags < 0 || fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) < 0) return -errno;
  return fcntl(descriptor, F_SETFD, FD_CLOEXEC) < 0 ? -errno : 0;
}

int crl_socket_set_option(int descriptor, int level, int option, const void *value, uint32_t length) {
  return setsockopt(descriptor, level, option, value, length) < 0 ? -errno : 0;
}

int crl_socket_peer_credentials(int descriptor, int32_t *process, uint32_t *user, uint32_t *group) {
  struct ucred peer;
  socklen_t length = sizeof peer;
  if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0) return -errno;
  *process = peer.pid;
  *user = peer.uid;
  *group = peer.gid;
  return 0;
}

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

int crl_socket_peer_process(int descriptor) {
  int process = -1;
  socklen_t length = sizeof process;
  return getsockopt(descriptor, SOL_SOCKET, SO_PEERPIDFD, &process, &length) < 0 ? -errno : process;
}

const int crl_level_socket = SOL_SOCKET, crl_level_tcp = IPPROTO_TCP, crl_option_reuse_port = SO_REUSEPORT,
          crl_option_keep_alive = SO_KEEPALIVE, crl_option_keep_alive_idle = TCP_KEEPIDLE,
          crl_option_keep_alive_interval = TCP_KEEPINTVL, crl_option_keep_alive_count = TCP_KEEPCNT,
          crl_option_user_timeout = TCP_USER_TIMEOUT, crl_option_no_delay = TCP_NODELAY,
          crl_option_receive_buffer = SO_RCVBUF, crl_option_send_buffer = SO_SNDBUF, crl_option_broadcast = SO_BROADCAST;

static int set_option(int descriptor, int level, int option, int on) {
  return setsockopt(descriptor, level, option, &on, sizeof on) < 0 ? -errno : 0;
}

int crl_socket_reuse_address(int descriptor, int on) { return set_option(descriptor, SOL_SOCKET, SO_REUSEADDR, on); }
int crl_socket_ipv6_only(int descriptor, int on) { return set_option(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, on); }
int crl_socket_no_delay(int descriptor, int on) { return set_option(descriptor, IPPROTO_TCP, TCP_NODELAY, on); }

// Addresses are stored in byte arrays, which may be unaligned, so they are copied.

static int store(const void *from, size_t length, void *address, uint32_t capacity) {
  if (length > capacity) return 0;
  memcpy(address, from, length);
  return (int)length;
}

int crl_address_make_ipv4(const char *host, uint16_t port, void *address, uint32_t capacity) {
  struct sockaddr_in made = {.sin_family = AF_INET, .sin_port = htons(port)};
  if (inet_pton(AF_INET, host, &made.sin_addr) != 1) return 0;
  return store(&made, sizeof made, address, capacity);
}

int crl_address_make_ipv6(const char *host, uint32_t scope, uint16_t port, void *address, uint32_t capacity) {
  struct sockaddr_in6 made = {.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_scope_id = scope};
  if (inet_pton(AF_INET6, host, &made.sin6_addr) != 1) return 0;
  return store(&made, sizeof made, address, capacity);
}

int crl_address_make_unix(const void *path, uint32_t count, void *address, uint32_t capacity) {
  struct sockaddr_un made = {.sun_family = AF_UNIX};
  if (count > sizeof made.sun_path) return 0;
  memcpy(made.sun_path, path, count);
  return store(&made, offsetof(struct sockaddr_un, sun_path) + count, address, capacity);
}

int crl_address_family(const void *address, uint32_t length) {
  sa_family_t family;
  if (length < sizeof family) return AF_UNSPEC;
  memcpy(&family, address, sizeof family);
  return family;
}

static int read_ipv4(const void *address, uint32_t length, struct sockaddr_in *read) {
  if (crl_address_family(address, length) != AF_INET || length < sizeof *read) return 0;
  memcpy(read, address, sizeof *read);
  return 1;
}

static int read_ipv6(const void *address, uint32_t length, struct sockaddr_in6 *read) {
  if (crl_address_family(address, length) != AF_INET6 || length < sizeof *read) return 0;
  memcpy(read, address, sizeof *read);
  return 1;
}

int crl_address_print_host(const void *address, uint32_t length, char *text, uint32_t capacity) {
  struct sockaddr_in ipv4;
  struct sockaddr_in6 ipv6;
  const char *made = NULL;
  if (read_ipv4(address, length, &ipv4)) made = inet_ntop(AF_INET, &ipv4.sin_addr, text, capacity);
  if (read_ipv6(address, length, &ipv6)) made = inet_ntop(AF_INET6, &ipv6.sin6_addr, text, capacity);
  return made ? (int)strlen(made) : 0;
}

int crl_address_port(const void *address, uint32_t length) {
  struct sockaddr_in ipv4;
  struct sockaddr_in6 ipv6;
  if (read_ipv4(address, length, &ipv4)) return ntohs(ipv4.sin_port);
  if (read_ipv6(address, length, &ipv6)) return ntohs(ipv6.sin6_port);
  return -1;
}

int crl_address_is_any(const void *address, uint32_t length) {
  struct sockaddr_in ipv4;
  struct sockaddr_in6 ipv6;
  if (read_ipv4(address, length, &ipv4)) return ipv4.sin_addr.s_addr == htonl(INADDR_ANY);
  return read_ipv6(address, length, &ipv6) && IN6_IS_ADDR_UNSPECIFIED(&ipv6.sin6_addr);
}

int crl_address_make_host(int family, const void *host, uint32_t scope, uint16_t port, void *address,
                          uint32_t capacity) {
  struct sockaddr_in ipv4 = {.sin_family = AF_INET, .sin_port = htons(port)};
  struct sockaddr_in6 ipv6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
  if (family == AF_INET) {
    memcpy(&ipv4.sin_addr, host, sizeof ipv4.sin_addr);
    return store(&ipv4, sizeof ipv4, address, capacity);
  }
  memcpy(&ipv6.sin6_addr, host, sizeof ipv6.sin6_addr);
  // The system does the same in the addresses of senders.
  if (IN6_IS_ADDR_LINKLOCAL(&ipv6.sin6_addr) || IN6_IS_ADDR_MC_LINKLOCAL(&ipv6.sin6_addr)) ipv6.sin6_scope_id = scope;
  return store(&ipv6, sizeof ipv6, address, capacity);
}

uint32_t crl_address_scope(const void *address, uint32_t length) {
  struct sockaddr_in6 ipv6;
  return read_ipv6(address, length, &ipv6) ? ipv6.sin6_scope_id : 0;
}

uint32_t crl_interface_number(const char *name) { return if_nametoindex(name); }

int crl_host_look_up(const char *host, const char *port, int family, int *number,
                     void (*body)(void *context, const void *address, uint32_t length), void *context) {
  struct addrinfo hints = {.ai_family = family, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *found = NULL;
  int answer = getaddrinfo(host, port, &hints, &found);
  *number = errno;
  if (answer != 0) return answer;
  for (struct addrinfo *next = found; next; next = next->ai_next) body(context, next->ai_addr, next->ai_addrlen);
  freeaddrinfo(found);
  return 0;
}

const char *crl_host_error_text(int answer) { return gai_strerror(answer); }

const int crl_host_error_system = EAI_SYSTEM, crl_host_error_again = EAI_AGAIN, crl_host_error_unknown = EAI_NONAME,
          crl_host_error_no_data = EAI_NODATA;

int crl_socket_drop_notes(int descriptor, int most) {
  int family = 0;
  socklen_t length = sizeof family;
  // A Unix socket has no such notifications, and would return bytes instead.
  if (getsockopt(descriptor, SOL_SOCKET, SO_DOMAIN, &family, &length) < 0) return -errno;
  if (family != AF_INET && family != AF_INET6) return 0;
  int count = 0;
  while (count < most) {
    struct msghdr note = {0};
    if (recvmsg(descriptor, &note, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) break;
    count++;
  }
  return count;
}

int crl_socket_reset_when_closed(int descriptor) {
  struct linger at_once = {.l_onoff = 1, .l_linger = 0};
  return setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) < 0 ? -errno : 0;
}
