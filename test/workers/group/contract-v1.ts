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

const HOLDER_V1 = {
  caller: 'fp_000000000000000000000000',
  tenant: 'fp_000000000000000000000000',
  agent: 'run-1',
  upstream: 'openai',
  model: 'gpt-4o',
};

function ticketV1(id: string, wait: boolean, more: object = {}): object {
  return {
    id,
    holder: HOLDER_V1,
    lane: 'normal',
    slots: 1,
    enqueuedAt: Date.now(),
    agentStartedAt: null,
    deadlineAt: null,
    wait,
    isTry: false,
    waitsElsewhere: false,
    parents: [],
    estimate: null,
    ...more,
  };
}

export function acquireV1(group: string, ticketId: string, wait = true, more: object = {}): object {
  return {
    version: 1,
    group,
    partition: null,
    assumed: null,
    configVersion: 1,
    sinceVersion: 1,
    attempt: 1,
    sliceMs: 8_000,
    mayAskLater: false,
    ticket: ticketV1(ticketId, wait, more),
    passedUnlimited: 0,
  };
}

/** The same by a client that knows more than this object. */
export function acquireOfLaterVersion(
  group: string,
  ticketId: string,
  wait = true,
  more: object = {},
): object {
  return {
    ...acquireV1(group, ticketId, wait, { lane: 'high', weight: 1, ...more }),
    version: 99,
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
    sinceVersion: 0,
    ticket: ticketV1(ticketId, false, {
      holder: { ...HOLDER_V1, agent: null, model: null },
    }),
  };
}

export function resumeV1(group: string, ticketId: string): object {
  return {
    group,
    partition: null,
    assumed: null,
    leaseId: `${ticketId}.1`,
    ticketId,
    holder: HOLDER_V1,
    lane: 'normal',
    slots: 1,
    attachment: null,
    nested: null,
    heirOf: [],
    reserved: null,
    hasLapsed: false,
    heldMs: 0,
  };
}

/** Builds a push of the directory. The configuration is JSON in text, with every field of version 1. */
export function definitionV1(name: string, slots: number, more: object = {}): object {
  return {
    version: 1,
    routingVersion: 1,
    config: JSON.stringify({
      name,
      match: {
        models: ['gpt-4o'],
        upstreams: [],
        base_urls: [],
        keys: [],
        operations: [],
        paths: [],
        methods: [],
        references: 'refuse',
      },
      partition_by: [],
      limits: {
        max_concurrency: slots,
        max_weight: 1,
        rpm: null,
        tpm: null,
        itpm: null,
        otpm: null,
        rpd: null,
        tpd: null,
        starts_per_s: null,
        burst: null,
        budget_usd: { per_hour: null, per_day: null, per_month: null, fallback_price: null },
      },
      members: [],
      affinity: null,
      queue: {
        max_length: 1,
        timeout_ms: 240_000,
        lane_timeouts_ms: { high: null, normal: null, low: null },
        max_length_each: null,
        max_length_each_agent: null,
        age_credit_ms: 120_000,
        lane_shares: { normal: 0.1, low: 0.05 },
        lane_rules: [],
        lane_default: 'normal',
        lane_max: null,
        keepalive: { after_ms: null, every_ms: 15_000 },
        nested: 'reject',
      },
      fairness: {
        by: ['caller', 'agent'],
        max_concurrency_each: null,
        max_concurrency_each_agent: null,
        weights: {},
        reserved: {},
      },
      holds: {
        release_cooldown_ms: 0,
        cancel_cooldown_ms: 0,
        failure_hold_ms: 0,
        idle_ms: 600_000,
        stalled_ms: 60_000,
        upload_min_bytes_per_s: 1_000,
        max_hold_ms: 3_600_000,
        max_run_ms: 900_000,
      },
      adaptive: 'auto',
      track_usage: 'auto',
      log: { days: 7, sample: 0.1, slow_ms: 30_000, cost_usd: 0.25 },
      feed_forward: {
        keep_requests: 2,
        keep_tokens: null,
        keep_share: 0.05,
        wait_max_ms: 65_000,
      },
      breaker: {
        threshold: 0.5,
        min_calls: 10,
        window_ms: 300_000,
        hold_ms: 15_000,
        hold_max_ms: 300_000,
      },
      probe: 'auto',
      retries: { max: 0, max_body_bytes: 4_194_304, budget: 0.1 },
      on_saturated: 'queue',
      warn_at: 0.8,
      warn_wait_ms: null,
      on_unavailable: 'reject',
      location: null,
      jurisdiction: null,
      paused: false,
      draining: false,
      dry_run: false,
      ...more,
    }),
  };
}
