// SPDX-License-Identifier: Apache-2.0

// Kernel interfaces for message ports: packets with descriptors over Unix-domain sockets, names that are files, and
// memory files. As in the main header, there is no logic, and failures are returned as a negative errno.
#pragma once

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

// The credentials of a socket's peer.
typedef struct crl_credentials {
  int32_t process;
  uint32_t user;
  uint32_t group;
} crl_credentials;

// Creates a packet socket (AF_UNIX, SOCK_SEQPACKET) that blocks and is closed on exec.
int crl_message_socket(void);

// The limit for socket paths: a path must be shorter than this.
size_t crl_message_path_limit(void);
int crl_message_bind(int socket, const char *path);
int crl_message_connect(int socket, const char *path);
int crl_message_listen(int socket);

// The errno of `accept` for a listening socket that was shut down.
enum { crl_message_no_connection = EINVAL };
int crl_message_credentials(int socket, crl_credentials *credentials);

// Sets the timeout of blocking calls in nanoseconds (0: none): of sends and connects if `sends`, otherwise of receives.
int crl_message_set_timeout(int socket, int sends, int64_t nanoseconds);

// Shuts down both directions.
int crl_message_shut_down(int socket);

// Discards the next packet and its descriptors. Files that are open nowhere else are closed before the call returns.
int crl_message_discard(int socket);

// Discards up to `limit` packets of a socket that was shut down, stopping at the first one with descriptors. Returns 1
// if no packet is left, not even an empty one, so that the socket closes without blocking, and 0 if some are left.
int crl_message_drain(int socket, int limit);

// Sends a packet of two parts with descriptors. Never blocks and raises no signal.
int crl_message_send(int socket, const void *header, size_t header_size, const void *payload, size_t payload_size,
                     const int *descriptors, int count);

// The maximum number of descriptors in a packet.
enum { CRL_MESSAGE_DESCRIPTORS = 253 };

// Receives a packet: returns its size, its descriptors (closed on exec), and whether the packet (1) or its descriptors
// (2) were truncated. `descriptors` must have room for CRL_MESSAGE_DESCRIPTORS.
int crl_message_receive(int socket, int blocks, void *buffer, size_t size, int *descriptors, int *count, int *truncation);

// Peeks at the next packet: returns its size, capped at `size`, copies of up to `limit` of its descriptors (closed on
// exec), and whether the packet is longer (1) or has more descriptors (2) for which numbers were available. Closes
// nothing that the packet contains.
int crl_message_peek(int socket, void *buffer, size_t size, int *descriptors, int limit, int *count, int *truncation);

// The kernel memory in bytes used by packets that were sent but not received yet.
int crl_message_unread(int socket);

// Whether `size` bytes can be allocated now.
int crl_message_can_allocate(size_t size);

// Waits until a socket is readable or writable (POLLIN, POLLOUT), for at most `nanoseconds` (negative: indefinitely).
int crl_message_poll(int socket, short events, int64_t nanoseconds);

// Name files, in a directory that is open as a path. A symbolic link at the end of a path is never followed.
int crl_message_open_lock(int directory, const char *name);
int crl_message_lock(int descriptor);
int crl_message_unlink(int directory, const char *name);

// Sets the permissions of an open file.
int crl_message_set_mode(int descriptor, uint32_t mode);

// Creates a memory file that can be passed, and sealed against changes and truncation.
int crl_message_memory(void);
// A fallback for systems that reject memory files: an unnamed file in a memory file system. It cannot be sealed.
int crl_message_memory_file(void);
// Whether a file is such an unnamed file, whose bytes can be read without waiting for anything but memory. Returns
// false for a memory file that could be sealed but is not.
int crl_message_memory_is_nameless(int descriptor);
int crl_message_memory_write(int descriptor, const void *bytes, size_t count);
int crl_message_memory_seal(int descriptor);
int crl_message_memory_is_sealed(int descriptor);
int crl_message_memory_read(int descriptor, void *bytes, size_t count, uint64_t offset);

// Duplicates a descriptor. The duplicate is closed on exec.
int crl_message_duplicate(int descriptor);
