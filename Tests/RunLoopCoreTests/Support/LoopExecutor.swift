// SPDX-License-Identifier: Apache-2.0

@testable import RunLoopCore

final class LoopExecutor: TaskExecutor {
  private let loop: RunLoop
  private let runner = LoopJobRunner()

  init(_ loop: RunLoop) {
    self.loop = loop
    runner.runs { [unowned self] job in job.runSynchronously(on: asUnownedTaskExecutor()) }
  }

  func enqueue(_ job: consuming ExecutorJob) { _ = loop.enqueue(LoopJob(UnownedJob(job), runner)) }

  func asUnownedTaskExecutor() -> UnownedTaskExecutor { UnownedTaskExecutor(ordinary: self) }
}
