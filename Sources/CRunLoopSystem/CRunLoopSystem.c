#include "CRunLoopSystem.h"

_Thread_local void *crl_thread_slot __attribute__((tls_model("initial-exec")));

int crl_thread_id(void) { return gettid(); }
