// SPDX-License-Identifier: Apache-2.0

// Thin wrappers of the calls that sockets need. As everywhere here: the kernel's answer, or a negative errno.
#pragma once

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

// Constants that need not be converted in Swift.
static const int crl_family_unix = AF_UNIX;
static const int crl_family_ipv4 = AF_INET;
static const int crl_family_ipv6 = AF_INET6;

// Makes a stream socket that does not block and is closed on exec.
int crl_socket_stream(int family);

// Makes a socket of datagrams, likewise.
int crl_socket_datagram(int family);
// The type of a socket.
int crl_socket_type(int descriptor);
static const int crl_socket_type_datagram = SOCK_DGRAM;
static const int crl_socket_type_stream = SOCK_STREAM;

// Accepts a connection that does not block and is closed on exec, with the peer's address, which is cut off at the
// capacity.
int crl_socket_accept(int descriptor, void *address, uint32_t capacity, uint32_t *length);

static inline int crl_socket_bind(int descriptor, const void *address, uint32_t length) {
  return bind(descriptor, (const struct sockaddr *)address, length) < 0 ? -errno : 0;
}

static inline int crl_socket_listen(int descriptor, int backlog) { return listen(descriptor, backlog) < 0 ? -errno : 0; }

static inline int crl_socket_connect(int descriptor, const void *address, uint32_t length) {
  return connect(descriptor, (const struct sockaddr *)address, length) < 0 ? -errno : 0;
}

// What is sent and received without waiting. libc's functions are places where a thread may be cancelled, at the price
// of two atomic exchanges a call; what does not wait need not be one. The thread sanitizer watches libc's functions
// alone.
#if defined(SYS_recvfrom) && defined(SYS_sendto) && !__has_feature(thread_sanitizer)
static inline ssize_t crl_receive_now(int descriptor, void *bytes, size_t count, int flags, void *address,
                                      socklen_t *length) {
  return syscall(SYS_recvfrom, descriptor, bytes, count, flags | MSG_DONTWAIT, address, length);
}
static inline ssize_t crl_send_now(int descriptor, const void *bytes, size_t count, const void *address,
                                   socklen_t length) {
  return syscall(SYS_sendto, descriptor, bytes, count, MSG_DONTWAIT | MSG_NOSIGNAL, address, length);
}
#else
static inline ssize_t crl_receive_now(int descriptor, void *bytes, size_t count, int flags, void *address,
                                      socklen_t *length) {
  return recvfrom(descriptor, bytes, count, flags | MSG_DONTWAIT, (struct sockaddr *)address, length);
}
static inline ssize_t crl_send_now(int descriptor, const void *bytes, size_t count, const void *address,
                                   socklen_t length) {
  return sendto(descriptor, bytes, count, MSG_DONTWAIT | MSG_NOSIGNAL, (const struct sockaddr *)address, length);
}
#endif

// Reads what is there, without waiting; zero is the end. At most 2^31 − 1 bytes.
static inline int crl_socket_receive(int descriptor, void *bytes, size_t count) {
  ssize_t answer = crl_receive_now(descriptor, bytes, count > INT32_MAX ? INT32_MAX : count, 0, NULL, NULL);
  return answer < 0 ? -errno : (int)answer;
}

// Whether bytes wait to be read, which stay there: one, or zero at the end.
static inline int crl_socket_peek(int descriptor) {
  char byte;
  ssize_t answer = crl_receive_now(descriptor, &byte, 1, MSG_PEEK, NULL, NULL);
  return answer < 0 ? -errno : (int)answer;
}

// Drops what the kernel notes of packets that were sent (MSG_ERRQUEUE), which reports the socket as failed until it is
// read. Returns how many notes there were; at most `most` are dropped.
int crl_socket_drop_notes(int descriptor, int most);

// A connection that is closed from now on is reset, and its port is free at once.
int crl_socket_reset_when_closed(int descriptor);

// Writes as much as there is room for, without waiting and without a signal. At most 2^31 − 1 bytes.
static inline int crl_socket_send(int descriptor, const void *bytes, size_t count) {
  ssize_t answer = crl_send_now(descriptor, bytes, count > INT32_MAX ? INT32_MAX : count, NULL, 0);
  return answer < 0 ? -errno : (int)answer;
}

// Receives a datagram without waiting: its length as it was sent, of which at most `count` bytes are stored, and its
// sender, of which at most `length` bytes are; `length` becomes the number of those.
static inline int crl_datagram_receive(int descriptor, void *bytes, uint32_t count, void *address, uint32_t *length) {
  socklen_t stored = *length;
  ssize_t answer = crl_receive_now(descriptor, bytes, count, MSG_TRUNC, address, &stored);
  if (answer < 0) return -errno;
  if (stored < *length) *length = stored;
  return (int)answer;
}

// Sends a datagram without waiting and without a signal; to the peer if there is no address.
static inline int crl_datagram_send(int descriptor, const void *bytes, size_t count, const void *address,
                                    uint32_t length) {
  if (count > INT32_MAX) return -EMSGSIZE;
  ssize_t answer = crl_send_now(descriptor, bytes, count, address, length);
  return answer < 0 ? -errno : (int)answer;
}

// Sends a datagram as above, from an address of this machine; its port is not looked at. The number of an interface is
// used for an address that is valid on one link only. EAFNOSUPPORT if the socket has no such addresses.
int crl_datagram_send_from(int descriptor, const void *bytes, size_t count, const void *address, uint32_t length,
                           const void *source, uint32_t source_length);

// The most descriptors that a message can have (SCM_MAX_FD).
enum { crl_passed_most = 253 };

// What the system delivers beside the bytes of a message.
typedef struct crl_ancillary {
  // The family of the two addresses; AF_UNSPEC: there are none. The first is the one that the sender has named, which
  // may be that of a group; the second is the one to answer from, all zero if the system has to choose it.
  int32_t family;
  uint32_t interface;
  uint8_t destination[16], local[16];
  // When it has arrived, by the real-time clock; -1: not known.
  int64_t nanoseconds;
  // Whether the system has closed descriptors that came with it, as this process can have no more.
  int32_t has_lost;
  int32_t descriptor_count;
  // All are closed on exec.
  int32_t descriptors[crl_passed_most];
} crl_ancillary;

// Has the system deliver, with each datagram, the address that it was sent to, or when it has arrived.
int crl_datagram_report_destination(int descriptor, int family);
int crl_datagram_report_time(int descriptor);
// Whether an address is the one of all interfaces.
int crl_address_is_any(const void *address, uint32_t length);
// An address of the bytes of a host, of the family of what was delivered.
int crl_address_make_host(int family, const void *host, uint32_t scope, uint16_t port, void *address, uint32_t capacity);

// Receives bytes of a stream, or a datagram as above, with what is beside them. Of a stream there is no address.
int crl_ancillary_receive(int descriptor, void *bytes, size_t count, void *address, uint32_t *length,
                          crl_ancillary *ancillary);

// How many datagrams one system call receives at most, and how many bytes it needs for what it notes of them.
enum { crl_burst_most = 16 };
size_t crl_burst_size(void);

// Receives datagrams without waiting: each of at most `size` bytes, `stride` bytes behind the one before, `count` of
// them at most, with what is beside them if that is wanted. Returns how many.
int crl_burst_receive(int descriptor, void *burst, void *bytes, size_t size, size_t stride, uint32_t count,
                      int has_ancillary);

// Of one that was received: its length as it was sent; its sender, and the length of that in `length`.
uint32_t crl_burst_length(const void *burst, uint32_t index);
const void *crl_burst_sender(const void *burst, uint32_t index, uint32_t *length);
// Whether descriptors came with it, or were lost; what is beside it, whose descriptors are open once.
int crl_burst_has_descriptors(const void *burst, uint32_t index);
void crl_burst_ancillary(const void *burst, uint32_t index, crl_ancillary *ancillary);

// Ends reading (SHUT_RD), writing (SHUT_WR) or both.
static inline int crl_socket_shut_down(int descriptor, int how) { return shutdown(descriptor, how) < 0 ? -errno : 0; }

// Takes the error of a socket: its number, zero for none.
static inline int crl_socket_take_error(int descriptor) {
  int error = 0;
  socklen_t length = sizeof error;
  return getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &length) < 0 ? -errno : error;
}

// The address of a socket or of its peer: at most `capacity` bytes are stored; returns the length.
static inline int crl_socket_name(int descriptor, void *address, uint32_t capacity) {
  socklen_t length = capacity;
  return getsockname(descriptor, (struct sockaddr *)address, &length) < 0 ? -errno : (int)length;
}
static inline int crl_socket_peer(int descriptor, void *address, uint32_t capacity) {
  socklen_t length = capacity;
  return getpeername(descriptor, (struct sockaddr *)address, &length) < 0 ? -errno : (int)length;
}

// Sets an option of a socket to one or zero.
int crl_socket_reuse_address(int descriptor, int on);
int crl_socket_ipv6_only(int descriptor, int on);
int crl_socket_no_delay(int descriptor, int on);

// Whether a socket listens: one or zero.
int crl_socket_accepts(int descriptor);
// Makes a descriptor that does not block and is closed on exec of one that was taken over.
int crl_descriptor_set_flags(int descriptor);
// Sets any option of a socket.
int crl_socket_set_option(int descriptor, int level, int option, const void *value, uint32_t length);
// Who was at the other end of a Unix socket when it was connected.
int crl_socket_peer_credentials(int descriptor, int32_t *process, uint32_t *user, uint32_t *group);
// A new descriptor of that process, closed on exec.
int crl_socket_peer_process(int descriptor);

// The numbers of the options that have names in Swift.
extern const int crl_level_socket, crl_level_tcp, crl_option_reuse_port, crl_option_keep_alive, crl_option_keep_alive_idle,
    crl_option_keep_alive_interval, crl_option_keep_alive_count, crl_option_user_timeout, crl_option_no_delay,
    crl_option_receive_buffer, crl_option_send_buffer, crl_option_broadcast;

// Makes, reads and prints addresses. An address is the bytes of a `sockaddr`; each returns its length, or zero if the
// text or the address is none of its kind. `capacity` is that of what is written.
int crl_address_make_ipv4(const char *host, uint16_t port, void *address, uint32_t capacity);
int crl_address_make_ipv6(const char *host, uint32_t scope, uint16_t port, void *address, uint32_t capacity);
int crl_address_make_unix(const void *path, uint32_t count, void *address, uint32_t capacity);
int crl_address_print_host(const void *address, uint32_t length, char *text, uint32_t capacity);
int crl_address_family(const void *address, uint32_t length);
int crl_address_port(const void *address, uint32_t length);
uint32_t crl_address_scope(const void *address, uint32_t length);

// The number of a network interface by its name; zero: there is none.
uint32_t crl_interface_number(const char *name);

// Looks the addresses of a host up, for stream sockets; it blocks. Each address is given to `body` with its length.
//
// The answer is `getaddrinfo`'s: zero, or a negative EAI_ number; for EAI_SYSTEM, `number` is the errno.
int crl_host_look_up(const char *host, const char *port, int family, int *number,
                     void (*body)(void *context, const void *address, uint32_t length), void *context);
const char *crl_host_error_text(int answer);
extern const int crl_host_error_system, crl_host_error_again, crl_host_error_unknown, crl_host_error_no_data;
