// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A store that only the thread that opened it may use.
protocol Store: Sendable {
  mutating func open() throws
  mutating func insert(_ value: Int) throws
  mutating func sum() throws -> Int
  mutating func close()
}

/// SQLite without its own locks, loaded at run time: neither its header nor the library is needed to build.
struct SQLite: Store, @unchecked Sendable {
  // Sendable: the actor that has it uses it on its thread alone.
  typealias Handle = OpaquePointer
  typealias Text = UnsafePointer<CChar>
  typealias Row = @convention(c) (UnsafeMutableRawPointer?, Int32, UnsafePointer<Text?>?, Handle?) -> Int32

  private let library: UnsafeMutableRawPointer
  private var database: Handle?

  init?() {
    guard let library = dlopen("libsqlite3.so.0", RTLD_NOW) else { return nil }
    self.library = library
  }

  private func function<Function>(_ name: String, as type: Function.Type) -> Function {
    guard let found = dlsym(library, name) else { fatalError("SQLite has no \(name)") }
    return unsafeBitCast(found, to: type)
  }

  var version: String {
    String(cString: function("sqlite3_libversion", as: (@convention(c) () -> Text).self)())
  }

  mutating func open() throws {
    typealias Open = @convention(c) (Text, UnsafeMutablePointer<Handle?>, Int32, Text?) -> Int32
    // SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX
    guard function("sqlite3_open_v2", as: Open.self)(":memory:", &database, 0x2 | 0x4 | 0x8000, nil) == 0 else {
      throw Unexpected("SQLite cannot open a database")
    }
    _ = try execute("CREATE TABLE entry (value INTEGER)")
  }

  mutating func insert(_ value: Int) throws { _ = try execute("INSERT INTO entry VALUES (\(value))") }

  mutating func sum() throws -> Int { try execute("SELECT sum(value) FROM entry") }

  mutating func close() {
    _ = function("sqlite3_close", as: (@convention(c) (Handle?) -> Int32).self)(database)
    database = nil
  }

  /// Executes a statement; returns the number in its last row, or 0.
  private func execute(_ statement: String) throws -> Int {
    typealias Execute = @convention(c) (Handle?, Text, Row?, UnsafeMutableRawPointer?, Handle?) -> Int32
    var result = 0
    let row: Row = { result, _, columns, _ in
      result?.assumingMemoryBound(to: Int.self).pointee = columns?[0].map(atol) ?? 0
      return 0
    }
    guard function("sqlite3_exec", as: Execute.self)(database, statement, row, &result, nil) == 0 else {
      throw Unexpected("SQLite does not execute \(statement)")
    }
    return result
  }
}

/// A sum in the thread's own data, which another thread does not see.
struct ThreadStore: Store {
  private var key = pthread_key_t()

  mutating func open() throws {
    guard pthread_key_create(&key, nil) == 0 else { throw Unexpected("no key for the thread's data") }
  }

  func insert(_ value: Int) { pthread_setspecific(key, UnsafeRawPointer(bitPattern: sum() + value)) }

  func sum() -> Int { Int(bitPattern: pthread_getspecific(key)) }

  func close() { pthread_key_delete(key) }
}
