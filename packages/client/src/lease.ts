import type { GrantedLease } from './granted.ts';
import { HeadgateError } from './errors.ts';
import type { Gate } from './gate.ts';
import { readAnswer, readFailure, type ProviderAnswer } from './provider-answer.ts';
import { LeaseRenewals } from './renewals.ts';
import { endBody, type Outcome, type Usage } from './request.ts';
import type { Exchange } from './server.ts';
import { backOff, later, steadyNow } from './waits.ts';

/** Headgate's decision about a provider's response. */
export interface Verdict {
  /**
   * - `go_on`: the lease continues.
   * - `again`: its slots were released. Wait for `afterMs`, then acquire with `ticket`, which keeps the age in the
   *   queue.
   * - `stop`: its slots were released, and a retry does not help.
   */
  readonly action: 'go_on' | 'again' | 'stop';
  /** Milliseconds to wait before a retry. */
  readonly afterMs: number;
  /** Ticket for the retry. null if there is none. */
  readonly ticket: string | null;
}

/** Slots held by this process. A lease is renewed automatically until it is released. */
export interface Lease {
  /** Ids of the lease. Operators find it by them, and nested leases name them in `parents`. */
  readonly ids: readonly string[];
  /** Names of the groups whose slots it holds. */
  readonly groups: readonly string[];
  /** Member of the group that was chosen. null if the group has no members. */
  readonly member: string | null;
  /** Milliseconds that the lease waited in the queue. */
  readonly waitedMs: number;
  /** Whether it holds no slots, because Headgate was unreachable and `onUnavailable` is `pass`. */
  readonly isBypass: boolean;
  /**
   * Aborted if the lease is revoked or lost, if the signal of its request is aborted, or if the reader of its result
   * stops before the end.
   */
  readonly signal: AbortSignal;
  /** Tokens that the work used. Set it before the lease ends; it is reported with the release. */
  usage: Usage | null;
  /**
   * Reports a provider's `Response`, the error that an SDK threw, or why the connection broke. Returns what to do next.
   */
  report(answer: unknown): Promise<Verdict>;
  /** Releases the slots. Repeated calls have no effect. Never rejects. */
  release(outcome?: Outcome): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

const GO_ON: Verdict = { action: 'go_on', afterMs: 0, ticket: null };

/** How long the first attempt to release may block the caller. Later attempts run in the background. */
const RELEASE_TIMEOUT_MS = 5_000;

/**
 * How long the release is retried after the lease has expired here. Headgate extends leases by the time in which it was
 * frozen, so it may hold a lease for longer. Releasing an expired lease has no effect.
 */
const RELEASE_RETRIED_MS = 600_000;

/** A lease that is renewed until it is released. */
export class RenewedLease implements Lease {
  readonly ids: readonly string[];
  readonly groups: readonly string[];
  readonly member: string | null;
  readonly waitedMs: number;
  readonly isBypass: boolean;
  readonly signal: AbortSignal;
  usage: Usage | null = null;
  /** The last verdict, and the response or error that it is about. */
  judged: { readonly answer: unknown; readonly verdict: Verdict } | null = null;
  readonly #gate: Gate;
  readonly #renewals: LeaseRenewals | null;
  readonly #abort = new AbortController();
  #released: Promise<void> | null = null;
  #unlink: () => void = () => {};

  /** `granted` is null for a bypass, which holds nothing. */
  constructor(gate: Gate, granted: GrantedLease | null, signal: AbortSignal | undefined) {
    this.#gate = gate;
    this.ids = granted?.leaseIds ?? [];
    this.groups = granted?.groups ?? [];
    this.member = granted?.member ?? null;
    this.waitedMs = granted?.waitedMs ?? 0;
    this.isBypass = granted === null;
    this.signal = this.#abort.signal;
    if (signal !== undefined) this.#follow(signal);
    this.#renewals = granted && new LeaseRenewals(gate, granted, (error) => this.#end(error));
  }

  /** The error that ended the lease while it was held. null if there is none. */
  get lost(): HeadgateError | null {
    const { reason } = this.signal as { reason: unknown };
    return reason instanceof HeadgateError && reason === this.#renewals?.ended ? reason : null;
  }

  async report(answer: unknown): Promise<Verdict> {
    return this.reportAnswer(answer, (await readAnswer(answer)) ?? readFailure(answer));
  }

  /** Reports a response that was already parsed. `answer` is the response or error that it was parsed from. */
  async reportAnswer(answer: unknown, parsed: ProviderAnswer): Promise<Verdict> {
    const verdict = this.#hasEnded ? GO_ON : await this.#requestVerdict({ ...parsed });
    this.judged = { answer, verdict };
    // Headgate released the slots with this verdict.
    if (verdict.action !== 'go_on') this.#released ??= Promise.resolve(this.#stop());
    return verdict;
  }

  /** Aborts the work because the reader cancelled its result. */
  stopWork(): void {
    this.#abort.abort(new DOMException('The result was not read to its end.', 'AbortError'));
  }

  release(outcome: Outcome = 'success'): Promise<void> {
    this.#released ??= this.#releaseNow(outcome);
    return this.#released;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }

  get #hasEnded(): boolean {
    return this.#renewals === null || this.#renewals.ended !== null || this.#released !== null;
  }

  async #requestVerdict(body: Record<string, unknown>): Promise<Verdict> {
    try {
      const reported = (await this.#exchange({ method: 'PATCH', body })).body;
      const { action, ticket } = reported;
      if (action !== 'again' && action !== 'stop') return GO_ON;
      const afterMs = Number(reported['after_ms'] ?? 0);
      return { action, afterMs, ticket: typeof ticket === 'string' ? ticket : null };
    } catch (error) {
      if (!(error instanceof HeadgateError)) throw error;
      // The provider's response matters more to the caller than a failure to report it.
      return GO_ON;
    }
  }

  async #releaseNow(outcome: Outcome): Promise<void> {
    await this.#stop();
    // Headgate may still hold a lease that was lost here, if only its responses were lost.
    if (!this.isBypass) await this.#tryRelease(outcome, 0);
  }

  /** Releases the lease and retries until Headgate responds, because until then it may hold the lease. */
  async #tryRelease(outcome: Outcome, failures: number): Promise<void> {
    const body = endBody(outcome, this.usage);
    try {
      await this.#exchange({ method: 'DELETE', body, timeoutMs: RELEASE_TIMEOUT_MS });
    } catch (error) {
      const { status } = error as HeadgateError;
      const isRefused = status !== null && status >= 400 && status < 429;
      const pause = backOff(failures + 1);
      const retriedUntil = (this.#renewals?.endsAt ?? 0) + RELEASE_RETRIED_MS;
      if (isRefused || steadyNow() + pause > retriedUntil) return;
      later(pause, () => void this.#tryRelease(outcome, failures + 1));
    }
  }

  #exchange(how: Omit<Exchange, 'path'>): ReturnType<Gate['server']['exchange']> {
    const path = `/leases/${encodeURIComponent(this.#renewals?.lease ?? '')}`;
    return this.#gate.server.exchange({ ...how, path });
  }

  async #stop(): Promise<void> {
    this.#unlink();
    await this.#renewals?.stop();
  }

  /** Aborts the work because the lease was revoked or lost. */
  #end(error: HeadgateError): void {
    this.#unlink();
    this.#abort.abort(error);
  }

  #follow(signal: AbortSignal): void {
    const onAbort = (): void => this.#abort.abort(signal.reason);
    if (signal.aborted) return onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    this.#unlink = () => signal.removeEventListener('abort', onAbort);
  }
}
