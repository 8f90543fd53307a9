import type { GrantedLease } from './granted.ts';
import { HeadgateError } from './errors.ts';
import type { Gate } from './gate.ts';
import { readAnswer, readFailure, type ProviderAnswer } from './provider-answer.ts';
import { LeaseRenewals } from './renewals.ts';
import { endBody, type Outcome, type Usage } from './request.ts';
import type { Exchange } from './server.ts';
import { backOff, later, steadyNow } from './waits.ts';

/** Headgate's word on a provider's answer. */
export interface Verdict {
  /**
   * `go_on`: the lease lives on. `again`: its slots went back; wait for `afterMs`, and ask with `ticket`, which keeps the
   * age. `stop`: its slots went back, and repeating does not help.
   */
  readonly action: 'go_on' | 'again' | 'stop';
  readonly afterMs: number;
  readonly ticket: string | null;
}

/** A hold on slots, which renews itself until it is released. */
export interface Lease {
  /** Ids of what is held, by which operators find it, and for `parents` of leases inside of this one. */
  readonly ids: readonly string[];
  /** The groups whose slots it holds. */
  readonly groups: readonly string[];
  /** The member of its group, where the group has members. */
  readonly member: string | null;
  readonly waitedMs: number;
  /** Nothing is held: Headgate could not be reached, and `onUnavailable` is `pass`. */
  readonly isBypass: boolean;
  /** Aborted when the lease is revoked or lost, with the signal of its request, and where its result is not read to its end. */
  readonly signal: AbortSignal;
  /** Tokens that the work used, once they are known. Told when the lease ends. */
  usage: Usage | null;
  /** Tells what the provider said: its `Response`, the error that an SDK threw, or why the connection broke. */
  report(answer: unknown): Promise<Verdict>;
  /** Gives the slots back. Once, however often it is called; it never throws. */
  release(outcome?: Outcome): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

const GO_ON: Verdict = { action: 'go_on', afterMs: 0, ticket: null };

/** How long a first try to release may keep its caller. The next ones are made behind its back. */
const RELEASE_TIMEOUT_MS = 5_000;

/**
 * How long after the end of the lease its release is still retried. Headgate extends its leases by the time in which it was
 * frozen, so it may hold a lease for longer than the client can know. Releasing an ended lease changes nothing.
 */
const RELEASE_RETRIED_MS = 600_000;

/** A lease, and the work of keeping it. */
export class RenewedLease implements Lease {
  readonly ids: readonly string[];
  readonly groups: readonly string[];
  readonly member: string | null;
  readonly waitedMs: number;
  readonly isBypass: boolean;
  readonly signal: AbortSignal;
  usage: Usage | null = null;
  /** The last verdict, and what it was about. */
  judged: { readonly said: unknown; readonly verdict: Verdict } | null = null;
  readonly #gate: Gate;
  readonly #renewals: LeaseRenewals | null;
  readonly #abort = new AbortController();
  #released: Promise<void> | null = null;
  #unlink: () => void = () => {};

  /** Null: it holds nothing. */
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

  /** The error by which it ended while it was held; null: it did not. */
  get lost(): HeadgateError | null {
    const { reason } = this.signal as { reason: unknown };
    return reason instanceof HeadgateError && reason === this.#renewals?.ended ? reason : null;
  }

  async report(said: unknown): Promise<Verdict> {
    return this.reportAnswer(said, (await readAnswer(said)) ?? readFailure(said));
  }

  /** Tells Headgate an answer, as it was read from what the provider or its SDK said. */
  async reportAnswer(said: unknown, answer: ProviderAnswer): Promise<Verdict> {
    const verdict = this.#over ? GO_ON : await this.#ask({ ...answer });
    this.judged = { said, verdict };
    // The slots went back with the answer.
    if (verdict.action !== 'go_on') this.#released ??= Promise.resolve(this.#stop());
    return verdict;
  }

  /** Tells the work that nobody wants its result any more. */
  stopWork(): void {
    this.#abort.abort(new DOMException('The result is not read to its end.', 'AbortError'));
  }

  release(outcome: Outcome = 'success'): Promise<void> {
    this.#released ??= this.#giveBack(outcome);
    return this.#released;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }

  get #over(): boolean {
    return this.#renewals === null || this.#renewals.ended !== null || this.#released !== null;
  }

  async #ask(body: Record<string, unknown>): Promise<Verdict> {
    try {
      const reported = (await this.#exchange({ method: 'PATCH', body })).body;
      const { action, ticket } = reported;
      if (action !== 'again' && action !== 'stop') return GO_ON;
      const afterMs = Number(reported['after_ms'] ?? 0);
      return { action, afterMs, ticket: typeof ticket === 'string' ? ticket : null };
    } catch (error) {
      if (!(error instanceof HeadgateError)) throw error;
      // What the provider said is worth more to the caller than why nobody heard of it.
      return GO_ON;
    }
  }

  async #giveBack(outcome: Outcome): Promise<void> {
    await this.#stop();
    // One that was lost may be alive at Headgate, if only the answers were.
    if (!this.isBypass) await this.#tryRelease(outcome, 0);
  }

  /** Releases the lease, and retries until Headgate answers: until then it may hold the lease. */
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

  /** Ends it from outside of the work. */
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
