import type { Check } from './check.ts';
import { cost } from './checks/cost.ts';
import { deploy } from './checks/deploy.ts';
import { egress } from './checks/egress.ts';
import { feed } from './checks/feed.ts';
import { isolates } from './checks/isolates.ts';
import { latency } from './checks/latency.ts';
import { memory } from './checks/memory.ts';
import { overload } from './checks/overload.ts';
import { release } from './checks/release.ts';
import { silence } from './checks/silence.ts';
import { upload } from './checks/upload.ts';

/** All checks in the order in which they run. Checks that disturb others come last. */
export const CHECKS: readonly Check[] = [
  latency,
  isolates,
  release,
  silence,
  upload,
  feed,
  cost,
  egress,
  overload,
  memory,
  deploy,
];
