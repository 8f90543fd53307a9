/** Target of a lease: a group by name, or an upstream and a model, which match groups as a call does. */
export type LeaseTarget =
  | { readonly group: string }
  | { readonly upstream: string; readonly model?: string | undefined };

/** A request for a lease. All fields except the target are optional. */
export type LeaseRequest = LeaseTarget & {
  /** Lane in the queue. Absent: the default lane of the key or the group. */
  readonly lane?: 'high' | 'normal' | 'low' | undefined;
  /** Id of the agent run. */
  readonly agent?: string | undefined;
  /** Start of the agent run, as a date or in epoch milliseconds. Absent: when the group first saw the run. */
  readonly agentStartedAt?: Date | number | undefined;
  /** Number of slots to acquire. @default 1 */
  readonly slots?: number | undefined;
  /**
   * Maximum wait in milliseconds, from the first request on. 0 means no wait. Temporary rejections are retried within
   * this time. If absent, the group's own limit applies, and a rejection is an error.
   */
  readonly maxWaitMs?: number | undefined;
  /** Estimated tokens of the work, for token limits and budgets. */
  readonly estimate?: Pick<Usage, 'inputTokens' | 'outputTokens'> | undefined;
  /** Ids of the leases that the calling work already holds, so that it does not wait for itself. */
  readonly parents?: readonly string[] | undefined;
  /** Ticket of a verdict with the action `again`. The request keeps its age in the queue. */
  readonly ticket?: string | undefined;
  /** Aborts the wait. Once the lease is granted, it aborts the signal of the lease. */
  readonly signal?: AbortSignal | undefined;
};

/** How the work under a lease ended. */
export type Outcome = 'success' | 'failed' | 'cancelled';

/** Tokens that the work actually used. */
export interface Usage {
  readonly inputTokens?: number | undefined;
  readonly outputTokens?: number | undefined;
  readonly cachedTokens?: number | undefined;
}

/** Converts a request to the JSON of the HTTP routes. Absent fields are not sent. */
export function requestBody(request: LeaseRequest): Record<string, unknown> {
  const { lane, agent, agentStartedAt, slots, maxWaitMs, estimate, parents, ticket } = request;
  const target =
    'group' in request
      ? { group: request.group }
      : { upstream: request.upstream, model: request.model };
  return {
    ...target,
    lane,
    agent,
    agent_started_at: agentStartedAt === undefined ? undefined : Number(agentStartedAt),
    slots,
    max_wait_ms:
      maxWaitMs === undefined || maxWaitMs === Infinity ? undefined : Math.ceil(maxWaitMs),
    estimate: estimate && {
      input_tokens: estimate.inputTokens,
      output_tokens: estimate.outputTokens,
    },
    parents,
    ticket,
  };
}

/** Returns the JSON body of a release. */
export function endBody(outcome: Outcome, usage: Usage | null): Record<string, unknown> {
  return {
    outcome,
    usage:
      usage === null
        ? undefined
        : {
            input_tokens: counted(usage.inputTokens),
            output_tokens: counted(usage.outputTokens),
            cached_tokens: counted(usage.cachedTokens),
          },
  };
}

/** Converts a count to a whole number. An invalid count is left out, because it would make the release fail. */
function counted(tokens: unknown): number | undefined {
  const count = Math.ceil(Number(tokens ?? NaN));
  return Number.isSafeInteger(count) && count >= 0 ? count : undefined;
}
