/**
 * A Worker of contract version 1, frozen: requests and answers are written out here and nothing of them
 * is imported from the source, so that a change of the contract cannot change this client with it. It is
 * never edited; a later version gets a file of its own.
 */
interface LeaseV1 extends Disposable {
  renew(status: number | null): Promise<string>;
  release(outcome: string, status: number | null): Promise<void>;
}

/** Any answer, with every field that version 1 looks at. */
interface AnswerV1 {
  readonly kind: string;
  readonly lease: LeaseV1;
  readonly leaseId: string;
  readonly attachment: number;
  readonly configVersion: number;
  readonly position: number;
  readonly estimateMs: number;
  readonly rejection: { readonly reason: string; readonly retryAfterMs: number };
}

export interface GroupV1 {
  acquire(request: object): Promise<AnswerV1>;
  cancel(ticketId: string): Promise<void>;
  release(leaseId: string, outcome: string, status: number | null): Promise<void>;
  resume(request: object): Promise<AnswerV1>;
  status(): Promise<object>;
  leases(): Promise<object[]>;
  revoke(leaseId: string): Promise<boolean>;
  reconfigure(definition: object): Promise<void>;
}

export function acquireV1(group: string, ticketId: string, wait = true): object {
  return {
    version: 1,
    group,
    partition: null,
    assumed: null,
    configVersion: 1,
    ticketId,
    attempt: 1,
    enqueuedAt: Date.now(),
    deadlineAt: null,
    wait,
    sliceMs: 8_000,
    caller: 'fp_000000000000000000000000',
    agent: 'run-1',
    upstream: 'openai',
    model: 'gpt-4o',
    passedUnlimited: 0,
  };
}

/** The same by a client that knows more than this object. */
export function acquireOfLaterVersion(group: string, ticketId: string, wait = true): object {
  return {
    ...acquireV1(group, ticketId, wait),
    version: 99,
    lane: 'high',
    weight: 1,
    forecast: { tokensIn: 100, tokensOut: 200 },
    groups: ['a', 'b'],
  };
}

export function acquireAutomaticV1(group: string, ticketId: string): object {
  return {
    ...acquireV1(group, ticketId, false),
    partition: 'fp_000000000000000000000000',
    assumed: { slotsMax: 1, source: 'built_in' },
    configVersion: 0,
    agent: null,
    model: null,
  };
}

export function resumeV1(group: string, ticketId: string): object {
  return {
    leaseId: `${ticketId}.1`,
    ticketId,
    caller: 'fp_000000000000000000000000',
    agent: 'run-1',
    upstream: 'openai',
    model: 'gpt-4o',
    group,
    partition: null,
    assumed: null,
  };
}

/** Builds a push of the directory. The configuration is JSON in text, with every field of version 1. */
export function definitionV1(name: string, slots: number, more: object = {}): object {
  return {
    version: 1,
    routingVersion: 1,
    config: JSON.stringify({
      name,
      match: { models: ['gpt-4o'], upstreams: [], base_urls: [], keys: [], operations: [] },
      partition_by: [],
      limits: { max_concurrency: slots, rpm: null, tpm: null },
      queue: { max_length: 1, timeout_ms: 240_000 },
      holds: {
        release_cooldown_ms: 0,
        cancel_cooldown_ms: 0,
        failure_hold_ms: 0,
        idle_ms: null,
        max_hold_ms: 3_600_000,
      },
      on_unavailable: 'reject',
      location: null,
      jurisdiction: null,
      paused: false,
      ...more,
    }),
  };
}

/** A lease's row as version 1 wrote it. */
export function rowV1(ticketId: string): string {
  return JSON.stringify({
    id: `${ticketId}.1`,
    ticket: ticketId,
    holder: {
      caller: 'fp_000000000000000000000000',
      agent: null,
      upstream: 'openai',
      model: 'gpt-4o',
    },
    grantedAt: Date.now() - 60_000,
    phase: 'held',
    extendedUntil: null,
    coolingUntil: null,
  });
}

/** The table that version 1 kept these rows in. */
export const TABLE_V1 =
  'CREATE TABLE lease (id TEXT PRIMARY KEY, boot TEXT NOT NULL, data TEXT NOT NULL) WITHOUT ROWID';
