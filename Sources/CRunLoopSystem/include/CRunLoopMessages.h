// What message ports need of the kernel: packets with descriptors over Unix-domain sockets, names that are files, memory that
// is a file. As in the main header: no logic, a negative errno for a failure.
#pragma once

#include <stddef.h>
#include <stdint.h>

// Who is at the other end of a socket.
typedef struct crl_credentials {
  int32_t process;
  uint32_t user;
  uint32_t group;
} crl_credentials;

// What a file is, and whose.
typedef struct crl_file_status {
  uint64_t device;
  uint64_t inode;
  uint32_t mode;
  uint32_t user;
} crl_file_status;

// A socket that carries packets (AF_UNIX, SOCK_SEQPACKET); it is closed on exec and blocks.
int crl_message_socket(void);

// A path names a socket if it is shorter than this.
size_t crl_message_path_limit(void);
int crl_message_bind(int socket, const char *path);
int crl_message_connect(int socket, const char *path);
int crl_message_listen(int socket);
int crl_message_credentials(int socket, crl_credentials *credentials);

// How long a call that blocks may take, in nanoseconds (0: without end); `sends`: one that sends or connects.
int crl_message_set_timeout(int socket, int sends, int64_t nanoseconds);

// Ends both directions.
int crl_message_shut_down(int socket);

// Sends one packet of two parts and with descriptors; never blocks, raises no signal.
int crl_message_send(int socket, const void *header, size_t header_size, const void *payload, size_t payload_size,
                     const int *descriptors, int count);

// How many descriptors one packet can carry.
enum { CRL_MESSAGE_DESCRIPTORS = 253 };

// Receives one packet: gives its size, its descriptors (closed on exec) and whether the packet (1) or its descriptors (2)
// were cut off. `descriptors` has room for CRL_MESSAGE_DESCRIPTORS.
int crl_message_receive(int socket, int blocks, void *buffer, size_t size, int *descriptors, int *count, int *truncation);

// Waits until a socket can be read or written (POLLIN, POLLOUT), at most so many nanoseconds (negative: without end).
int crl_message_poll(int socket, short events, int64_t nanoseconds);

// Directories and files.
int crl_message_make_directory(const char *path);
int crl_message_status(const char *path, crl_file_status *status);
int crl_message_descriptor_status(int descriptor, crl_file_status *status);
int crl_message_open_lock(const char *path);
int crl_message_lock(int descriptor);
int crl_message_unlink(const char *path);
int crl_message_change_mode(const char *path, uint32_t mode);

// Memory that is a file, which can be passed, and sealed so that it can be neither changed nor shortened.
int crl_message_memory(void);
int crl_message_memory_write(int descriptor, const void *bytes, size_t count);
int crl_message_memory_seal(int descriptor);
int crl_message_memory_is_sealed(int descriptor);
int crl_message_memory_read(int descriptor, void *bytes, size_t count, uint64_t offset);

// Another number for an open file; it is closed on exec.
int crl_message_duplicate(int descriptor);
