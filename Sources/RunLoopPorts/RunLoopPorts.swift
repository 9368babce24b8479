// What wakes a loop from outside: message ports between processes, sockets, signals, child processes, file changes.
