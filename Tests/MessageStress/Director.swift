// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Starts both processes, kills either at random and restarts it, and counts the messages at the end.
func direct(count: Int, interval: Int, seed: UInt64, mostKills: Int) {
  var template = Array("/tmp/message-stress-XXXXXX".utf8CString)
  guard mkdtemp(&template) != nil else { fatalError("no directory") }
  let directory = template.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } } ?? ""
  let ledger = Ledger(at: directory + "/ledger", count: count)
  var state = seed
  func random(_ limit: Int) -> Int {
    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
    return Int(state >> 33) % limit
  }
  var processes = [start("receive", directory, count), start("send", directory, count)]
  var kills = [0, 0]
  var reached = 0
  while true {
    usleep(useconds_t(1000 * (1 + random(2 * interval))))
    // Only the sender exits by itself, after it has sent everything.
    var status: Int32 = 0
    if waitpid(processes[1], &status, WNOHANG) == processes[1] {
      guard status == 0 else { fatalError("the sender ended with \(status)") }
      break
    }
    guard waitpid(processes[0], &status, WNOHANG) == 0 else { fatalError("the receiver ended with \(status)") }
    // At least one message is handled between two kills, however busy the machine is.
    let before = reached
    while reached < count, ledger.fate(reached) != .none { reached += 1 }
    guard reached > before, kills[0] + kills[1] < mostKills else { continue }
    let victim = random(2)
    kill(processes[victim], SIGKILL)
    waitpid(processes[victim], &status, 0)
    guard status == SIGKILL || (victim == 1 && status == 0) else { fatalError("a process ended with \(status)") }
    if victim == 1 && status == 0 { break }
    kills[victim] += 1
    processes[victim] = start(victim == 0 ? "receive" : "send", directory, count)
  }
  kill(processes[0], SIGKILL)
  waitpid(processes[0], nil, 0)
  let isRight = countUp(ledger, kills)
  for name in ["/ledger", "/stress", "/stress.lock"] { unlink(directory + name) }
  rmdir(directory)
  exit(isRight ? 0 : 1)
}

private func start(_ role: String, _ directory: String, _ count: Int) -> pid_t {
  var process = pid_t()
  let words = ["/proc/self/exe", role, directory, "\(count)"].map { (word: String) in strdup(word) }
  defer { for word in words { free(word) } }
  var environment: [UnsafeMutablePointer<CChar>?] = [nil]
  // Runs this program itself, whatever its name.
  guard posix_spawn(&process, "/proc/self/exe", nil, nil, words + [nil], &environment) == 0 else {
    fatalError("no process")
  }
  return process
}

/// Prints the counts, and returns whether every message was either delivered once or reported.
private func countUp(_ ledger: Ledger, _ kills: [Int]) -> Bool {
  var fates = [0, 0, 0, 0]
  var twice = 0
  var lost = 0
  var reportedAndDelivered = 0
  var withSender = 0
  for message in 0..<ledger.count {
    let fate = ledger.fate(message)
    let deliveries = ledger.deliveries(message)
    fates[Int(fate.rawValue)] += 1
    if deliveries > 1 { twice += 1 }
    if fate == .confirmed && deliveries != 1 { lost += 1 }
    if fate == .reported && deliveries == 1 { reportedAndDelivered += 1 }
    if fate == .tried && deliveries == 1 { withSender += 1 }
  }
  print("messages \(ledger.count), kills of the receiver \(kills[0]), of the sender \(kills[1])")
  print("confirmed \(fates[3]); reported \(fates[2]), of which had arrived \(reportedAndDelivered)")
  print("in flight when their sender was killed \(fates[1]), of which had arrived \(withSender)")
  print("never tried \(fates[0]), delivered twice \(twice), confirmed and not delivered \(lost)")
  print(
    "descriptors of the receiver, first and most: \(ledger.note(.receiverFirst)) \(ledger.note(.receiverMost)); "
      + "of the sender: \(ledger.note(.senderFirst)) \(ledger.note(.senderMost))")
  // A connection that has just ended may still be counted, and a message in the handler has one or two descriptors.
  let isFlat =
    ledger.note(.receiverMost) <= ledger.note(.receiverFirst) + 5
    && ledger.note(.senderMost) <= ledger.note(.senderFirst) + 3
  let isRight = fates[0] == 0 && twice == 0 && lost == 0 && isFlat
  print(isRight ? "right" : "WRONG")
  return isRight
}
