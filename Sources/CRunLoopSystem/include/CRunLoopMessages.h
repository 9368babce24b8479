// SPDX-License-Identifier: Apache-2.0

// What message ports need of the kernel: packets with descriptors over Unix-domain sockets, names that are files,
// memory that is a file. As in the main header: no logic, a negative errno for a failure.
#pragma once

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

// Who is at the other end of a socket.
typedef struct crl_credentials {
  int32_t process;
  uint32_t user;
  uint32_t group;
} crl_credentials;

// A socket that carries packets (AF_UNIX, SOCK_SEQPACKET); it is closed on exec and blocks.
int crl_message_socket(void);

// A path names a socket if it is shorter than this.
size_t crl_message_path_limit(void);
int crl_message_bind(int socket, const char *path);
int crl_message_connect(int socket, const char *path);
int crl_message_listen(int socket);

// What `accept` answers, negated, when a listening socket was shut down and nobody is left to accept.
enum { crl_message_no_connection = EINVAL };
int crl_message_credentials(int socket, crl_credentials *credentials);

// How long a call that blocks may take, in nanoseconds (0: indefinitely); `sends`: one that sends or connects.
int crl_message_set_timeout(int socket, int sends, int64_t nanoseconds);

// Ends both directions.
int crl_message_shut_down(int socket);

// Drops the next packet, with the descriptors in it: what nobody else has open is closed before the call returns.
int crl_message_discard(int socket);

// Drops the packets of a socket that was shut down, up to the first with descriptors and at most so many. 1: none is
// left, not even an empty one, so that the socket closes without waiting for anything. 0: some are left.
int crl_message_drain(int socket, int limit);

// Sends one packet of two parts and with descriptors; never blocks, raises no signal.
int crl_message_send(int socket, const void *header, size_t header_size, const void *payload, size_t payload_size,
                     const int *descriptors, int count);

// How many descriptors one packet can carry.
enum { CRL_MESSAGE_DESCRIPTORS = 253 };

// Receives one packet: returns its size, its descriptors (closed on exec) and whether the packet (1) or its descriptors
// (2) were cut off. `descriptors` has room for CRL_MESSAGE_DESCRIPTORS.
int crl_message_receive(int socket, int blocks, void *buffer, size_t size, int *descriptors, int *count, int *truncation);

// Looks at the next packet without taking it: returns its size, at most `size`, copies of at most `limit` of its
// descriptors (closed on exec), and whether the packet is longer (1) or has more descriptors (2), as far as there are
// numbers for them. Nothing that is in the packet is closed by it.
int crl_message_peek(int socket, void *buffer, size_t size, int *descriptors, int limit, int *count, int *truncation);

// How much the packets that were sent and not received take of the kernel's memory, in bytes.
int crl_message_unread(int socket);

// Whether so many bytes can be allocated now.
int crl_message_can_allocate(size_t size);

// Waits until a socket can be read or written (POLLIN, POLLOUT), at most so many nanoseconds (negative: indefinitely).
int crl_message_poll(int socket, short events, int64_t nanoseconds);

// The files of names, in a directory that is open as a path. Nothing follows a symbolic link at the end of a path.
int crl_message_open_lock(int directory, const char *name);
int crl_message_lock(int descriptor);
int crl_message_unlink(int directory, const char *name);

// Sets the permissions of an open file.
int crl_message_set_mode(int descriptor, uint32_t mode);

// Memory that is a file, which can be passed, and sealed so that it can be neither changed nor shortened.
int crl_message_memory(void);
// The same for a system that refuses it: a file without a name in a file system that keeps its files in memory. It
// cannot be sealed.
int crl_message_memory_file(void);
// Whether a file is such a file, whose bytes can be read without waiting for anything but memory; not memory that could
// be sealed and is not.
int crl_message_memory_is_nameless(int descriptor);
int crl_message_memory_write(int descriptor, const void *bytes, size_t count);
int crl_message_memory_seal(int descriptor);
int crl_message_memory_is_sealed(int descriptor);
int crl_message_memory_read(int descriptor, void *bytes, size_t count, uint64_t offset);

// Another number for an open file; it is closed on exec.
int crl_message_duplicate(int descriptor);
