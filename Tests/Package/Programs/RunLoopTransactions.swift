// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import RunLoopTransactions

/// Two results from workers, applied in one commit.
@main enum Program {
  static func main() {
    let loop = RunLoop.current
    let pipeline = CommitPipeline(loop: loop)
    let transaction = AsyncTransaction()
    for number in [6, 7] {
      transaction.add { _ in
        number
      } completion: { _ in
        pipeline.setNeedsCommit()
      }
    }
    pipeline.whenCommitted { report in
      print("RunLoopTransactions: \(report.marks) changes in commit \(report.number)")
      loop.stop()
    }
    transaction.commit()
    exit(loop.run(mode: .default, for: .seconds(60)) == .stopped ? 0 : 1)
  }
}
