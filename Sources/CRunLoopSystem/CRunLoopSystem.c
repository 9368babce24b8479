#include "CRunLoopSystem.h"

_Thread_local void *crl_thread_slot __attribute__((tls_model("initial-exec")));
_Thread_local void *crl_fault_slot __attribute__((tls_model("initial-exec")));

int32_t crl_fork_generation = 0;

int crl_thread_id(void) { return gettid(); }
