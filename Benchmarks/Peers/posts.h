// SPDX-License-Identifier: Apache-2.0

// W1 to W4: posts. Included by workloads.h.

struct running_loop {
  struct loop loop;
  struct race_gate *started;
};

static void running_loop_started(void *context) { race_gate_open((struct race_gate *)context); }

static void running_loop_body(void *context) {
  struct running_loop *running = (struct running_loop *)context;
  loop_make(&running->loop);
  loop_post(&running->loop, running_loop_started, running->started);
  loop_run(&running->loop);
}

// Starts a loop on a new thread, which runs until the process ends.
static struct loop *loop_start(void) {
  struct running_loop *running = (struct running_loop *)calloc(1, sizeof *running);
#ifdef LOOP_HAS_NO_THREAD
  loop_make(&running->loop);
  return &running->loop;
#endif
  running->started = race_gate_make();
  race_thread(running_loop_body, running);
  race_gate_wait(running->started);
  return &running->loop;
}

static void run_one(void *context) {
  (void)context;
  race_run_one();
}

static void produce(int64_t count, void *context) {
  struct loop *loop = (struct loop *)context;
  for (int64_t i = 0; i < count; i++) loop_post(loop, run_one, NULL);
}

#ifndef LOOP_POST_CAPTURING
// The C equivalent of a closure that captures an object and a number: an allocated context that holds a reference.
struct object {
  long references;
  int64_t *sum;
};

struct closure {
  struct object *object;
  int64_t number;
};

static void run_closure(void *context) {
  struct closure *closure = (struct closure *)context;
  *closure->object->sum += closure->number;
  race_run_one();
  if (__atomic_sub_fetch(&closure->object->references, 1, __ATOMIC_ACQ_REL) == 0) free(closure->object);
  free(closure);
}

static void produce_capturing(int64_t count, void *context) {
  struct loop *loop = (struct loop *)context;
  static int64_t sum;
  struct object *object = (struct object *)malloc(sizeof *object);
  object->references = 1;
  object->sum = &sum;
  for (int64_t i = 0; i < count; i++) {
    struct closure *closure = (struct closure *)malloc(sizeof *closure);
    __atomic_fetch_add(&object->references, 1, __ATOMIC_RELAXED);
    closure->object = object;
    closure->number = i;
    loop_post(loop, run_closure, closure);
  }
  if (__atomic_sub_fetch(&object->references, 1, __ATOMIC_ACQ_REL) == 0) free(object);
}
#endif

static void w1(void) {
  race_posts(1, race_scaled(POSTS, 1000), race_captures() ? produce_capturing : produce, loop_start());
}

static void w2(void) {
  race_posts(4, race_scaled(POSTS, 1000), race_captures() ? produce_capturing : produce, loop_start());
}

// W3. Each loop posts to the other. The first counts the round trips.
struct table {
  struct loop *here, *there;
  int64_t left;
};

static void hit_there(void *context);

static void hit_here(void *context) {
  struct table *table = (struct table *)context;
  race_run_one();
  if (--table->left > 0) loop_post(table->there, hit_there, table);
}

static void hit_there(void *context) {
  struct table *table = (struct table *)context;
  loop_post(table->here, hit_here, table);
}

static void play(int64_t count, void *context) {
  struct table *table = (struct table *)context;
  table->left = count;
  loop_post(table->there, hit_there, table);
}

static void w3(void) {
  struct table table;
  table.here = loop_start();
  table.there = loop_start();
  table.left = 0;
  race_turns("round trip", race_scaled(TURNS, 100), play, &table);
}

// W4. The posting thread waits on a semaphore for each call.
struct call {
  struct loop *loop;
  struct race_gate *done;
};

static void answer(void *context) {
  race_run_one();
  race_gate_open(((struct call *)context)->done);
}

static void make_calls(int64_t count, void *context) {
  struct call *call = (struct call *)context;
  for (int64_t i = 0; i < count; i++) {
    loop_post(call->loop, answer, call);
    race_gate_wait(call->done);
  }
}

static void w4(void) {
  struct call call;
  call.loop = loop_start();
  call.done = race_gate_make();
  race_turns("post and wait", race_scaled(TURNS, 100), make_calls, &call);
}

// L1 and L2.
static void wait_over(void *context) {
  (void)context;
  race_wait_over();
}

static void post_wait(void *context) { loop_post((struct loop *)context, wait_over, NULL); }
static void l1(void) { race_waits(post_wait, loop_start()); }

static void l2(void) {
  for (int i = 0; i < 100; i++) loop_start();
  race_rest("100 idle loops");
}

// W8, in processor time, as nothing waits.
static void w8(void) {
  struct loop *loop = (struct loop *)calloc(1, sizeof *loop);
  loop_make(loop);
  int64_t count = race_scaled(PASSES, 1000);
  passes(loop, count / 20 + 1, false);
  int64_t before = race_cpu();
  passes(loop, count, false);
  race_report("pass", (double)(race_cpu() - before) / (double)count, "ns");
#ifdef OBSERVERS
  before = race_cpu();
  passes(loop, count, true);
  race_report("pass, observed", (double)(race_cpu() - before) / (double)count, "ns");
#endif
#ifdef IDLE_PASSES
  before = race_cpu();
  idle_passes(loop, count);
  race_report("pass, by an idle handle", (double)(race_cpu() - before) / (double)count, "ns");
#endif
}
