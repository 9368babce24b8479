// SPDX-License-Identifier: Apache-2.0

// Thin wrappers of the socket calls. As everywhere in this module, they return the kernel's result or a negative errno.
#pragma once

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

// Constants with types that Swift code can use without conversion.
static const int crl_family_unix = AF_UNIX;
static const int crl_family_ipv4 = AF_INET;
static const int crl_family_ipv6 = AF_INET6;

// Creates a stream socket that is non-blocking and closed on exec.
int crl_socket_stream(int family);

// Creates a datagram socket that is non-blocking and closed on exec.
int crl_socket_datagram(int family);
// The type of a socket, such as crl_socket_type_stream.
int crl_socket_type(int descriptor);
static const int crl_socket_type_datagram = SOCK_DGRAM;
static const int crl_socket_type_stream = SOCK_STREAM;

// Accepts a connection as a descriptor that is non-blocking and closed on exec. Stores the peer's address, truncated
// to `capacity` bytes.
int crl_socket_accept(int descriptor, void *address, uint32_t capacity, uint32_t *length);

static inline int crl_socket_bind(int descriptor, const void *address, uint32_t length) {
  return bind(descriptor, (const struct sockaddr *)address, length) < 0 ? -errno : 0;
}

static inline int crl_socket_listen(int descriptor, int backlog) { return listen(descriptor, backlog) < 0 ? -errno : 0; }

static inline int crl_socket_connect(int descriptor, const void *address, uint32_t length) {
  return connect(descriptor, (const struct sockaddr *)address, length) < 0 ? -errno : 0;
}

// Non-blocking sends and receives. The functions of libc are cancellation points, which cost two atomic exchanges per
// call; a call that does not block need not be one. The thread sanitizer intercepts only the functions of libc.
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

// Reads available bytes without blocking, at most 2^31 − 1. Returns 0 at the end of the stream.
static inline int crl_socket_receive(int descriptor, void *bytes, size_t count) {
  ssize_t answer = crl_receive_now(descriptor, bytes, count > INT32_MAX ? INT32_MAX : count, 0, NULL, NULL);
  return answer < 0 ? -errno : (int)answer;
}

// Returns 1 if there are bytes to read, without consuming them, and 0 at the end of the stream.
static inline int crl_socket_peek(int descriptor) {
  char byte;
  ssize_t answer = crl_receive_now(descriptor, &byte, 1, MSG_PEEK, NULL, NULL);
  return answer < 0 ? -errno : (int)answer;
}

// Discards at most `most` notifications about sent packets (MSG_ERRQUEUE), because the socket reports an error while
// there are any. Returns how many were discarded.
int crl_socket_drop_notes(int descriptor, int most);

// Makes closing the connection reset it, which frees its port immediately.
int crl_socket_reset_when_closed(int descriptor);

// Writes as many bytes as there is room for, at most 2^31 − 1, without blocking and without raising a signal.
static inline int crl_socket_send(int descriptor, const void *bytes, size_t count) {
  ssize_t answer = crl_send_now(descriptor, bytes, count > INT32_MAX ? INT32_MAX : count, NULL, 0);
  return answer < 0 ? -errno : (int)answer;
}

// Receives a datagram without blocking. Returns its length as sent, of which at most `count` bytes are stored. Stores
// at most `*length` bytes of the sender's address, and sets `*length` to the number stored.
static inline int crl_datagram_receive(int descriptor, void *bytes, uint32_t count, void *address, uint32_t *length) {
  socklen_t stored = *length;
  ssize_t answer = crl_receive_now(descriptor, bytes, count, MSG_TRUNC, address, &stored);
  if (answer < 0) return -errno;
  if (stored < *length) *length = stored;
  return (int)answer;
}

// Sends a datagram without blocking and without raising a signal. If `address` is NULL, it is sent to the connected
// peer.
static inline int crl_datagram_send(int descriptor, const void *bytes, size_t count, const void *address,
                                    uint32_t length) {
  if (count > INT32_MAX) return -EMSGSIZE;
  ssize_t answer = crl_send_now(descriptor, bytes, count, address, length);
  return answer < 0 ? -errno : (int)answer;
}

// Sends a datagram from a local address, whose port is ignored. The scope of a link-local address selects the
// interface. Fails with EAFNOSUPPORT if the source is not of the socket's family.
int crl_datagram_send_from(int descriptor, const void *bytes, size_t count, const void *address, uint32_t length,
                           const void *source, uint32_t source_length);

// The maximum number of descriptors in a message (SCM_MAX_FD).
enum { crl_passed_most = 253 };

// Ancillary data delivered with a message.
typedef struct crl_ancillary {
  // The family of the two addresses, or AF_UNSPEC if there are none. `destination` is the address to which the sender
  // sent the message, which may be a multicast group. `local` is the address to reply from, or all zeros if the system
  // must choose.
  int32_t family;
  uint32_t interface;
  uint8_t destination[16], local[16];
  // The time of arrival on the real-time clock in nanoseconds, or -1 if it is unknown.
  int64_t nanoseconds;
  // Whether the system closed descriptors that arrived with the message, because this process reached its limit.
  int32_t has_lost;
  int32_t descriptor_count;
  // Every descriptor is closed on exec.
  int32_t descriptors[crl_passed_most];
} crl_ancillary;

// Enables delivery of each datagram's destination address, or of its time of arrival.
int crl_datagram_report_destination(int descriptor, int family);
int crl_datagram_report_time(int descriptor);
// Whether an address is the wildcard address.
int crl_address_is_any(const void *address, uint32_t length);
// Makes an address from the bytes of a host address of the given family.
int crl_address_make_host(int family, const void *host, uint32_t scope, uint16_t port, void *address, uint32_t capacity);

// Receives stream bytes, or a datagram as above, with ancillary data. For a stream, `address` must be NULL.
int crl_ancillary_receive(int descriptor, void *bytes, size_t count, void *address, uint32_t *length,
                          crl_ancillary *ancillary);

// The maximum number of datagrams that one system call receives, and the size of the buffer for their headers.
enum { crl_burst_most = 16 };
size_t crl_burst_size(void);

// Receives up to `count` datagrams without blocking, each of up to `size` bytes, at intervals of `stride` bytes.
// Includes ancillary data if `has_ancillary` is true. Returns the number of datagrams.
int crl_burst_receive(int descriptor, void *burst, void *bytes, size_t size, size_t stride, uint32_t count,
                      int has_ancillary);

// The length of a received datagram as it was sent, and its sender with the length of the sender's address.
uint32_t crl_burst_length(const void *burst, uint32_t index);
const void *crl_burst_sender(const void *burst, uint32_t index, uint32_t *length);
// Whether descriptors arrived with the datagram or were lost, and its ancillary data. Read the latter only once,
// because it transfers ownership of the descriptors.
int crl_burst_has_descriptors(const void *burst, uint32_t index);
void crl_burst_ancillary(const void *burst, uint32_t index, crl_ancillary *ancillary);

// Shuts down reading (SHUT_RD), writing (SHUT_WR) or both (SHUT_RDWR).
static inline int crl_socket_shut_down(int descriptor, int how) { return shutdown(descriptor, how) < 0 ? -errno : 0; }

// Returns and clears a socket's pending error number, which is 0 if there is none.
static inline int crl_socket_take_error(int descriptor) {
  int error = 0;
  socklen_t length = sizeof error;
  return getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &length) < 0 ? -errno : error;
}

// The address of a socket or of its peer. Stores at most `capacity` bytes, and returns the full length.
static inline int crl_socket_name(int descriptor, void *address, uint32_t capacity) {
  socklen_t length = capacity;
  return getsockname(descriptor, (struct sockaddr *)address, &length) < 0 ? -errno : (int)length;
}
static inline int crl_socket_peer(int descriptor, void *address, uint32_t capacity) {
  socklen_t length = capacity;
  return getpeername(descriptor, (struct sockaddr *)address, &length) < 0 ? -errno : (int)length;
}

// Turns a socket option on or off.
int crl_socket_reuse_address(int descriptor, int on);
int crl_socket_ipv6_only(int descriptor, int on);
int crl_socket_no_delay(int descriptor, int on);

// Returns 1 if a socket is listening, otherwise 0.
int crl_socket_accepts(int descriptor);
// Makes a descriptor non-blocking and closed on exec, for one obtained from elsewhere.
int crl_descriptor_set_flags(int descriptor);
// Sets an arbitrary socket option.
int crl_socket_set_option(int descriptor, int level, int option, const void *value, uint32_t length);
// The peer of a Unix socket at the time of the connection.
int crl_socket_peer_credentials(int descriptor, int32_t *process, uint32_t *user, uint32_t *group);
// Returns a new descriptor of the peer's process, closed on exec.
int crl_socket_peer_process(int descriptor);

// The values of the options that have names in Swift.
extern const int crl_level_socket, crl_level_tcp, crl_option_reuse_port, crl_option_keep_alive, crl_option_keep_alive_idle,
    crl_option_keep_alive_interval, crl_option_keep_alive_count, crl_option_user_timeout, crl_option_no_delay,
    crl_option_receive_buffer, crl_option_send_buffer, crl_option_broadcast;

// Make, read and print socket addresses. An address consists of the bytes of a `sockaddr`. The functions that write
// return the length written, or 0 if the text or address is not of the required kind. `capacity` is the size of the
// output buffer.
int crl_address_make_ipv4(const char *host, uint16_t port, void *address, uint32_t capacity);
int crl_address_make_ipv6(const char *host, uint32_t scope, uint16_t port, void *address, uint32_t capacity);
int crl_address_make_unix(const void *path, uint32_t count, void *address, uint32_t capacity);
int crl_address_print_host(const void *address, uint32_t length, char *text, uint32_t capacity);
int crl_address_family(const void *address, uint32_t length);
int crl_address_port(const void *address, uint32_t length);
uint32_t crl_address_scope(const void *address, uint32_t length);

// The index of a network interface by name, or 0 if there is none.
uint32_t crl_interface_number(const char *name);

// Looks up the addresses of a host for stream sockets, and passes each to `body`. Blocks.
//
// Returns the result of `getaddrinfo`: 0, or a negative EAI_ number. For EAI_SYSTEM, `number` is the errno.
int crl_host_look_up(const char *host, const char *port, int family, int *number,
                     void (*body)(void *context, const void *address, uint32_t length), void *context);
const char *crl_host_error_text(int answer);
extern const int crl_host_error_system, crl_host_error_again, crl_host_error_unknown, crl_host_error_no_data;
