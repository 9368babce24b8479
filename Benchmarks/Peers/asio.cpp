// SPDX-License-Identifier: Apache-2.0

// Boost.Asio: an `io_context` run by one thread (concurrency hint 1). Posts: `asio::post`. Timers: `steady_timer`; a
// cancelled wait completes with a handler, so the context is polled after every thousand operations, within the
// measured time. W9: `async_read_some` on a local socket, which is faster than `async_wait`. W11: `async_read_some`
// and `async_write`.

#include <CRace.h>

#include <boost/asio.hpp>
#include <boost/intrusive_ptr.hpp>
#include <new>
#include <optional>

namespace asio = boost::asio;

#define PEER "Boost.Asio"
#define POSTS 2000000
#define TURNS 30000
#define PASSES 300000
#define ONE_SHOTS 1000000
#define EVENTS 100000

// A loop is zeroed memory in which the object is constructed.
struct loop {
  alignas(asio::io_context) char room[sizeof(asio::io_context)];
  asio::io_context &io() { return *reinterpret_cast<asio::io_context *>(room); }
};

static void loop_make(struct loop *loop) { new (loop->room) asio::io_context(1); }

static void loop_run(struct loop *loop) {
  auto guard = asio::make_work_guard(loop->io());
  loop->io().restart();
  loop->io().run();
}

static void loop_quit(struct loop *loop) { loop->io().stop(); }

static inline void loop_post(struct loop *loop, void (*run)(void *), void *context) {
  asio::post(loop->io(), [run, context] { run(context); });
}

// The equivalent of a closure that captures an object and a number: a lambda with a counting pointer and the number.
struct object {
  long references = 0;
  int64_t *sum;
};

static inline void intrusive_ptr_add_ref(object *object) {
  __atomic_fetch_add(&object->references, 1, __ATOMIC_RELAXED);
}

static inline void intrusive_ptr_release(object *object) {
  if (__atomic_sub_fetch(&object->references, 1, __ATOMIC_ACQ_REL) == 0) delete object;
}

#define LOOP_POST_CAPTURING
static void produce_capturing(int64_t count, void *context) {
  auto *loop = static_cast<struct loop *>(context);
  static int64_t sum;
  boost::intrusive_ptr<object> captured(new object{0, &sum});
  for (int64_t i = 0; i < count; i++) {
    asio::post(loop->io(), [captured, i] {
      *captured->sum += i;
      race_run_one();
    });
  }
}

// -- Timers

struct timer {
  alignas(asio::steady_timer) char room[sizeof(asio::steady_timer)];
  void (*fire)(struct timer *);
  asio::steady_timer &asio() { return *reinterpret_cast<asio::steady_timer *>(room); }
};

// The other libraries cache the time while a program creates timers, so this does too.
static asio::steady_timer::time_point timers_now;

static inline void timer_init(struct loop *loop, struct timer *timer, void (*fire)(struct timer *)) {
  if (timers_now == asio::steady_timer::time_point()) timers_now = asio::steady_timer::clock_type::now();
  new (timer->room) asio::steady_timer(loop->io());
  timer->fire = fire;
}

static inline void timer_wait(struct timer *timer) {
  timer->asio().async_wait([timer](const boost::system::error_code &error) {
    if (!error) timer->fire(timer);
  });
}

static inline void timer_start(struct timer *timer, int64_t delay) {
  timer->asio().expires_at(timers_now + std::chrono::nanoseconds(delay));
  timer_wait(timer);
}

static inline void timer_cancel(struct timer *timer) { timer->asio().cancel(); }
static inline void timer_move(struct timer *timer, int64_t delay) { timer_start(timer, delay); }
#define LOOP_DRAIN(loop) ((loop)->io().restart(), (loop)->io().poll())

static void timer_next(struct timer *timer, int64_t period) {
  timer->asio().expires_at(timer->asio().expiry() + std::chrono::nanoseconds(period));
  timer->asio().async_wait([timer, period](const boost::system::error_code &error) {
    if (error) return;
    timer_next(timer, period);
    timer->fire(timer);
  });
}

static inline void timer_repeat(struct timer *timer, int64_t period) {
  timer->asio().expires_at(asio::steady_timer::clock_type::now());
  timer_next(timer, period);
}

static inline int64_t timer_periods(struct timer *) { return 1; }

static inline void timer_free(struct timer *timer) {
  timer->asio().~basic_waitable_timer();
  free(timer);
}
#define TIMER_FREE

// -- Descriptors

#define WATCH_HAS_READ

struct watch {
  asio::local::stream_protocol::socket *socket;
  char byte;
  void (*ready)(struct watch *);
};

static void watch_again(struct watch *watch) {
  watch->socket->async_read_some(
      asio::buffer(&watch->byte, 1), [watch](const boost::system::error_code &error, std::size_t) {
        if (error) return;
        watch->ready(watch);
        watch_again(watch);
      });
}

static void watch_start(struct loop *loop, struct watch *watch, int descriptor, void (*ready)(struct watch *)) {
  watch->socket =
      new asio::local::stream_protocol::socket(loop->io(), asio::local::stream_protocol(), descriptor);
  watch->ready = ready;
  watch_again(watch);
}

// -- W8

static struct {
  struct loop *loop;
  int64_t left;
} w8_state;

static void w8_again() {
  if (--w8_state.left > 0) asio::post(w8_state.loop->io(), w8_again);
  else loop_quit(w8_state.loop);
}

static void passes(struct loop *loop, int64_t count, bool) {
  w8_state.loop = loop;
  w8_state.left = count;
  asio::post(loop->io(), w8_again);
  loop_run(loop);
}

// -- W11

#define OWN_ECHO

struct connection {
  asio::ip::tcp::socket socket;
  char buffer[4096];
};

static struct loop *echo_loop;

static void echo_read(connection *connection) {
  connection->socket.async_read_some(
      asio::buffer(connection->buffer), [connection](const boost::system::error_code &error, std::size_t got) {
        if (error) {
          connection->socket.close();
          if (race_echo_closed()) loop_quit(echo_loop);
          return;
        }
        asio::async_write(
            connection->socket, asio::buffer(connection->buffer, got),
            [connection](const boost::system::error_code &failure, std::size_t) {
              race_check(!failure, "an answer was not sent");
              echo_read(connection);
            });
      });
}

static void echo_start(struct loop *loop, const int *connections) {
  echo_loop = loop;
  for (int i = 0; i < race_connections(); i++) {
    echo_read(new connection{asio::ip::tcp::socket(loop->io(), asio::ip::tcp::v4(), connections[i]), {}});
  }
}

#include "workloads.h"
