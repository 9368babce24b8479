// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC
import RunLoopCommands
import RunLoopLab

exit(RunLoopCommand.status(of: Array(CommandLine.arguments.dropFirst()), others: ObservingCommands.all))
