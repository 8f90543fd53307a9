export { createHeadgate, type Headgate, type HeadgateOptions } from './headgate.ts';
export { HeadgateError } from './errors.ts';
export type { HeldResult } from './held-results.ts';
export type { Lease, Verdict } from './lease.ts';
export type { Limit } from './limit.ts';
export type { LeaseRequest, Outcome, LeaseTarget, Usage } from './request.ts';
export type { CallScope, CallerGroupStatus, Status } from './status.ts';
