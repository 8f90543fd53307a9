/** The place of a lease: a group by its name, or an upstream and a model, which lead to groups as a call's do. */
export type LeaseTarget =
  | { readonly group: string }
  | { readonly upstream: string; readonly model?: string | undefined };

/** Wishes about a lease. All but the place are optional. */
export type LeaseRequest = LeaseTarget & {
  /** The lane in which it waits. */
  readonly lane?: 'high' | 'normal' | 'low' | undefined;
  /** The agent run that it belongs to. */
  readonly agent?: string | undefined;
  /** When that run began. Absent: the group remembers when it first saw it. */
  readonly agentStartedAt?: Date | number | undefined;
  /** Slots that it takes. @default 1 */
  readonly slots?: number | undefined;
  /**
   * How long it may wait for them, in milliseconds from the first request on. 0: not at all. With it, a refusal that passes
   * is waited out within that time. Absent: as long as the group allows, and what the group refuses is an error.
   */
  readonly maxWaitMs?: number | undefined;
  /** Tokens that the work will probably use, for limits of tokens and budgets. */
  readonly estimate?: Pick<Usage, 'inputTokens' | 'outputTokens'> | undefined;
  /** Leases that the work around this one holds, so that it does not wait for itself. */
  readonly parents?: readonly string[] | undefined;
  /** A ticket of an earlier lease's report that said `again`: the wait keeps its age. */
  readonly ticket?: string | undefined;
  /** Ends the wait, and afterwards the lease's own signal. */
  readonly signal?: AbortSignal | undefined;
};

/** How the work under a lease ended. */
export type Outcome = 'success' | 'failed' | 'cancelled';

/** Tokens that the work used in truth. */
export interface Usage {
  readonly inputTokens?: number | undefined;
  readonly outputTokens?: number | undefined;
  readonly cachedTokens?: number | undefined;
}

/** Writes a request in the words of the HTTP routes. What is absent is not sent. */
export function requestBody(request: LeaseRequest): Record<string, unknown> {
  const { lane, agent, agentStartedAt, slots, maxWaitMs, estimate, parents, ticket } = request;
  const place =
    'group' in request
      ? { group: request.group }
      : { upstream: request.upstream, model: request.model };
  return {
    ...place,
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

/** Writes how the work ended. */
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

/** Writes a count as the routes take it: one that is none must not cost the release that it comes with. */
function counted(tokens: unknown): number | undefined {
  const count = Math.ceil(Number(tokens ?? NaN));
  return Number.isSafeInteger(count) && count >= 0 ? count : undefined;
}
