// SPDX-License-Identifier: Apache-2.0

// Downloads URLs to files or to standard output.
//
//     swift run --package-path Examples http-get [--parallel N] [--resume] [--output FILE] URL…
//
// A single URL is written to standard output, unless --output names a file. Several URLs are written to files named
// after the last component of their paths, with a number if names collide. With --resume, interrupted downloads
// continue. The exit status is 1 if a download failed.

import Glibc
import RunLoopCore
import RunLoopHTTP

func say(_ text: String) {
  var line = "http-get: \(text)\n"
  line.withUTF8 { _ = write(STDERR_FILENO, $0.baseAddress, $0.count) }
}

func usage() -> Never {
  say("usage: http-get [--parallel N] [--resume] [--output FILE] URL…")
  exit(2)
}

var parallel = 4
var resumes = false
var output: String?
var urls: [String] = []
var words = CommandLine.arguments.dropFirst()
while let word = words.popFirst() {
  switch word {
  case "--parallel":
    guard let number = words.popFirst().flatMap({ Int($0) }), number > 0 else { usage() }
    parallel = number
  case "--resume": resumes = true
  case "--output":
    guard let name = words.popFirst() else { usage() }
    output = name
  case _ where word.hasPrefix("--"): usage()
  default: urls.append(word)
  }
}
guard !urls.isEmpty, output == nil || urls.count == 1 else { usage() }

/// Writes bytes to a stream such as standard output as they arrive.
final class Stream: HTTP.Sink {
  struct Failure: Error, CustomStringConvertible {
    let description: String
  }

  private let descriptor: Int32

  init(_ descriptor: Int32) { self.descriptor = descriptor }

  /// Opens an existing file that is not a regular one, such as /dev/null; nil for other paths.
  init?(special path: String) {
    var status = stat()
    guard stat(path, &status) == 0, ![S_IFREG, S_IFDIR].contains(status.st_mode & S_IFMT) else { return nil }
    descriptor = open(path, O_WRONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
  }

  func begin(_ response: HTTP.Response, at offset: Int64) throws {}

  func write(_ bytes: UnsafeRawBufferPointer) throws {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = Glibc.write(descriptor, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
      guard count > 0 else { throw Failure(description: "the output: \(String(cString: strerror(errno)))") }
      rest = rest.dropFirst(count)
    }
  }

  func end() throws {}
}

/// Returns the file name for a URL: the last component of its path.
func fileName(of url: String) -> String {
  let parts = url.prefix { $0 != "?" && $0 != "#" }.split(separator: "/")
  let name = parts.count > 2 ? String(parts[parts.count - 1]) : "index.html"
  return name == "." || name == ".." ? "index.html" : name
}

/// Returns unique file names for URLs: a second "file" becomes "file.2".
func fileNames(of urls: [String]) -> [String] {
  var used: Set<String> = []
  return urls.map { url in
    let name = fileName(of: url)
    var (unique, number) = (name, 2)
    while !used.insert(unique).inserted {
      unique = "\(name).\(number)"
      number += 1
    }
    return unique
  }
}

/// The downloads, a limited number at a time, all on the main thread's loop.
@MainActor final class Downloads {
  private let client: HTTP.Client
  private let display: Display
  private var next = 0
  private var running = 0
  private var failures = 0
  private let names = fileNames(of: urls)

  init() {
    var configuration = HTTP.Configuration()
    configuration.connectionsPerHost = parallel
    configuration.retry.maximumCount = 3
    client = HTTP.Client(configuration)
    display = Display(urls)
  }

  func goOn() {
    while running < parallel, next < urls.count {
      start(next)
      next += 1
      running += 1
    }
    guard running == 0 else { return }
    client.stop()
    exit(failures == 0 ? 0 : 1)
  }

  private func start(_ number: Int) {
    let target: HTTP.Output
    var path: String?
    if urls.count == 1, output == nil, !resumes {
      target = .sink(Stream(STDOUT_FILENO))
    } else if let output, let stream = Stream(special: output) {
      (target, path) = (.sink(stream), output)
    } else {
      let name = output ?? names[number]
      if !resumes {
        unlink(name + ".part")
        unlink(name + ".part.json")
      }
      (target, path) = (.file(name), name)
    }
    let operation = client.operation(HTTP.Request(urls[number]), output: target)
    let name = path ?? urls[number]
    operation.onProgress { progress in
      MainActor.assumeIsolated { self.display.show(number, "\(bar(progress))  \(name)") }
    }
    operation.onCompletion { result in
      MainActor.assumeIsolated { self.end(number, name, operation.progress, result.map { $0.1 }) }
    }
    operation.start()
  }

  private func end(
    _ number: Int, _ name: String, _ progress: HTTP.Progress, _ result: Result<HTTP.Response, HTTP.Error>
  ) {
    running -= 1
    switch result {
    case .success(let response) where response.status.kind == .successful:
      display.end(number, "\(size(progress.received))  \(name)")
    case .success(let response):
      failures += 1
      display.end(number, "status \(response.status)  \(name)")
    case .failure(let error):
      failures += 1
      display.end(number, "\(error)")
    }
    goOn()
  }
}

signal(SIGPIPE, SIG_IGN)
let downloads = Downloads()
downloads.goOn()
RunLoop.main.runUntilStopped()
