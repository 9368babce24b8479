// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopConformance

exit(ConformanceCommand().run(Array(CommandLine.arguments.dropFirst())))
