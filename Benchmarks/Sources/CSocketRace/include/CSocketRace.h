// The client of the race of echo servers, and the leanest server to race against.
#pragma once
#include <stdint.h>

enum { SOCKET_RACE_MESSAGE = 64 };

// Sends requests over connections to a port of this machine, one under way on each; gives the nanoseconds that it took.
int64_t socket_race_client(int port, int connections, int requests);

// A socket that listens on the loopback interface, and its port.
int socket_race_listen(int *port);

// Serves so many connections with epoll until all are closed.
void socket_race_serve(int listener, int connections);

// Starts this program's client in a process of its own; its answer is what it prints.
int socket_race_start(int port, int connections, int requests);
int64_t socket_race_answer(void);

// The processor time of the calling thread, in nanoseconds.
int64_t socket_race_thread_time(void);

void socket_race_raise_limit(void);
