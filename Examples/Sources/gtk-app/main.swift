// SPDX-License-Identifier: Apache-2.0

// A GTK 4 window whose button starts a task of the main actor: it computes on a resident thread, makes an HTTP
// request, waits for the main dispatch queue, and shows the result in a label. One line makes that work:
// GLibHost.attach().
//
//     swift run --package-path Examples gtk-app [URL]

import CGtk
import Dispatch
import Glibc
import RunLoopCore
import RunLoopGLib
import RunLoopHTTP
import RunLoopThreads

/// The window, isolated to the main actor.
@MainActor final class Window {
  private let label = gtk_label_new("press the button")
  private let button = gtk_button_new_with_label("Load")
  private let client = HTTP.Client()
  private let worker: ResidentThread
  private let url: String

  init(_ application: UnsafeMutablePointer<GtkApplication>, url: String) throws {
    self.url = url
    worker = try ResidentThread(name: "worker")
    let window = gtk_application_window_new(application)
    let box = gtk_box_new(GTK_ORIENTATION_VERTICAL, 12)
    gtk_widget_set_margin_top(box, 24)
    gtk_widget_set_margin_start(box, 24)
    gtk_widget_set_margin_end(box, 24)
    gtk_box_append(opaque(box), label)
    gtk_box_append(opaque(box), button)
    gtk_window_set_title(opaque(window), "Swift in GTK")
    gtk_window_set_default_size(opaque(window), 420, 160)
    gtk_window_set_child(opaque(window), box)
    connect(button, "clicked") { self.load() }
    gtk_window_present(opaque(window))
  }

  private func load() {
    gtk_widget_set_sensitive(button, 0)
    show("loading…")
    Task {
      do {
        let sum = try await worker.run { (1...1000).reduce(0, +) }
        let (body, response) = try await client.data(for: HTTP.Request(.get, url))
        await nextTurn(after: .milliseconds(100))
        show("a thread says \(sum), the server \(response.status.code) with \(body.count) bytes")
      } catch {
        show("\(error)")
      }
      gtk_widget_set_sensitive(button, 1)
    }
  }

  /// Suspends until the main dispatch queue runs a block.
  private func nextTurn(after delay: DispatchTimeInterval) async {
    await withCheckedContinuation { continuation in
      DispatchQueue.main.asyncAfter(deadline: .now() + delay) { continuation.resume() }
    }
  }

  private func show(_ text: String) {
    gtk_label_set_text(opaque(label), text)
    print(text)
    fflush(nil)
  }
}

/// Casts a pointer to one GTK class to a pointer to another.
func opaque<Class, Other>(_ pointer: UnsafeMutablePointer<Class>?) -> UnsafeMutablePointer<Other>? {
  UnsafeMutableRawPointer(pointer)?.assumingMemoryBound(to: Other.self)
}

func opaque<Class>(_ pointer: UnsafeMutablePointer<Class>?) -> OpaquePointer? { OpaquePointer(pointer) }

/// The handler of a GTK signal, called on the main thread and so on the main actor.
final class Handler: Sendable {
  let body: @MainActor () -> Void

  init(_ body: @escaping @MainActor () -> Void) {
    self.body = body
  }
}

func connect<Class>(
  _ instance: UnsafeMutablePointer<Class>?, _ signal: String, _ body: @escaping @MainActor () -> Void
) {
  let call: @convention(c) (UnsafeMutableRawPointer?, UnsafeMutableRawPointer?) -> Void = { _, data in
    guard let data else { return }
    let handler = Unmanaged<Handler>.fromOpaque(data).takeUnretainedValue()
    MainActor.assumeIsolated { handler.body() }
  }
  g_signal_connect_data(
    instance, signal, unsafeBitCast(call, to: GCallback.self), Unmanaged.passRetained(Handler(body)).toOpaque(),
    { data, _ in if let data { Unmanaged<Handler>.fromOpaque(data).release() } }, GConnectFlags(rawValue: 0))
}

var window: Window?

@MainActor func start() throws -> Int32 {
  let url = CommandLine.arguments.dropFirst().first ?? "http://127.0.0.1:8080/"
  guard let application = gtk_application_new("org.example.gtk-app", G_APPLICATION_NON_UNIQUE) else { return 1 }
  try GLibHost.attach { g_application_quit(opaque(application)) }
  connect(application, "activate") {
    do { window = try Window(application, url: url) } catch { fatalError("\(error)") }
  }
  let status = g_application_run(opaque(application), 0, nil)
  g_object_unref(application)
  return status
}

exit(try start())
